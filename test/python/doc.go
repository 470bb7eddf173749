// Package python runs the packages for Python, and the lines of docs/python.md, against the real libraries.
package python
