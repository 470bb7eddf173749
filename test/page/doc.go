// Package page tests the live page in a real Chromium, before a real daemon. scripts/need-chromium installs one where there is none;
// SLUICE_CHROMIUM names another. With SLUICE_SCREENSHOTS=DIR pictures of the page are left there to be looked at.
package page
