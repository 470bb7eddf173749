package proxy

import (
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/provider"
)

// locate returns the path at the upstream for a path that a client sends. It refuses a call that may be in several places.
func (d *door) locate(path string) (place string, f *refusal) {
	if d.locator == nil {
		return provider.JoinPath(d.base, path), nil
	}
	place, either := d.locator.Locate(strings.ToLower(d.res.Upstream.Hostname()), d.base, path)
	if either != nil {
		f = refuse(http.StatusNotFound, "the path may mean several calls: as it is written, the gate would ask "+d.res.Upstream.Host+" for "+place,
			"let either the base URL or the upstream of "+d.name+" state one of "+strings.Join(either, ", "))
	}
	return place, f
}
