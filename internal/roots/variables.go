package roots

import (
	"path/filepath"
	"slices"
)

// fileVariables lists environment variables that name a file, and for some programs a directory, of trusted
// certificates.
var fileVariables = []string{
	"SSL_CERT_FILE",       // OpenSSL, Go, Python
	"REQUESTS_CA_BUNDLE",  // requests, httpx, pip
	"CURL_CA_BUNDLE",      // curl, requests
	"NODE_EXTRA_CA_CERTS", // Node; the only one that adds to the trusted certificates instead of replacing them
	"GIT_SSL_CAINFO",
	"AWS_CA_BUNDLE", // boto3, aws
	"DENO_CERT",
	"CARGO_HTTP_CAINFO",
}

// furtherVariables are read by fewer programs.
var furtherVariables = []string{
	"PIP_CERT", "NIX_SSL_CERT_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT", "npm_config_cafile",
}

// dirVariable names directories of trusted certificates, for OpenSSL and Go.
const dirVariable = "SSL_CERT_DIR"

// Variables returns the environment variables to set for programs that are to trust the certificates of one file. Those
// that few programs read are among them only if they are set: their programs would otherwise not trust that file.
func Variables(getenv func(string) string) []string {
	return append(slices.Clone(fileVariables), slices.DeleteFunc(slices.Clone(furtherVariables), func(name string) bool { return getenv(name) == "" })...)
}

// place is a file or directory that the environment names.
type place struct{ variable, path string }

// places returns the files and directories that the environment names, each once.
func places(getenv func(string) string) (all []place) {
	add := func(variable, path string) {
		if path != "" && !slices.ContainsFunc(all, func(p place) bool { return p.path == path }) {
			all = append(all, place{variable, path})
		}
	}
	for _, name := range slices.Concat(fileVariables, furtherVariables) {
		add(name, getenv(name))
	}
	for _, dir := range filepath.SplitList(getenv(dirVariable)) {
		add(dirVariable, dir)
	}
	return all
}
