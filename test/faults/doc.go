// Command faults runs the fault campaign against a real Redis.
package main

import _ "github.com/Shopify/toxiproxy/v2"

func main() {}
