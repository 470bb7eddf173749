// Package compose checks the files for Docker Compose and GitHub Actions in deploy, as far as that goes without Docker and GitHub.
package compose
