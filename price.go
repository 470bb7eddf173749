package sluice

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/ticketid"
)

// tokenUnits are the units that have a price.
var tokenUnits = []string{"input_tokens", "output_tokens", "tokens", "cache_read_tokens", "cache_write_tokens"}

func hasTokens(list []Amount) bool {
	return slices.ContainsFunc(list, func(a Amount) bool { return slices.Contains(tokenUnits, a.Unit) })
}

// priceModel returns the model whose price applies.
func (req *Request) priceModel() string {
	if req.Priced != "" {
		return req.Priced
	}
	return req.Model
}

// reckon estimates the cost of a request that states no dollars, and adds it to the request. It reports false if nothing
// says that the request costs money: it states no tokens, its resource is not paid, and its model has no price.
func (r *resource) reckon(req *Request) (micros int64, costs bool) {
	stated := hasTokens(req.Cost)
	if r.price == nil || req.Unpaid || !r.paid && !stated && (r.free || req.priceModel() == "") {
		return 0, false
	}
	micros, known := r.price(req.priceModel(), req.Cost)
	if !r.paid && !stated && !known {
		return 0, false
	}
	req.Unpriced = !known
	req.Cost = append(slices.Clip(req.Cost), Amount{Unit: USD, N: micros})
	return micros, true
}

// priceTag returns the request with its price, for events, if no budget needs it. A request that names neither a model
// nor tokens has no price.
func (r *resource) priceTag(req *Request) *Request {
	if _, stated := usdOf(req.Cost); stated || req.priceModel() == "" && !hasTokens(req.Cost) {
		return req
	}
	tagged := *req
	if _, costs := r.reckon(&tagged); !costs {
		return req
	}
	return &tagged
}

// ListPrice returns the price of usage by the gate's own prices, in millionths of a dollar, even if usage states
// dollars. It reports false if usage states no tokens or the resource has no prices.
func (g inside) ListPrice(resource, model string, usage []Amount) (micros int64, ok bool) {
	r := g.resources[resource]
	if r == nil || r.price == nil || !hasTokens(usage) {
		return 0, false
	}
	micros, _ = r.price(model, usage)
	return micros, true
}

// PricedAs returns the model whose price applies to the ticket's usage; empty if the ticket does not tell.
func (t Ticket) PricedAs() string {
	if t.money == nil && t.note == nil {
		return ""
	}
	return t.pricedAs()
}

// priced adds dollars to usage that states only tokens. guessed is set if they are at the default price.
func (t *Ticket) priced(usage []Amount) (list []Amount, guessed bool) {
	if t.resource == nil || t.resource.price == nil || t.request().Unpaid || !hasTokens(usage) {
		return usage, false
	}
	if _, stated := usdOf(usage); stated {
		return usage, false
	}
	model := t.request().priceModel()
	if t.money != nil {
		model = t.money.model
	} else if t.note == nil {
		return usage, false // a ticket of another process, whose id names no model
	}
	micros, known := t.resource.price(model, usage)
	return append(slices.Clip(usage), Amount{Unit: USD, N: micros}), !known
}

// pricedAs returns the model to put into the ticket's id, so that the process that closes the ticket can price its
// usage. Tickets that cost no money name none.
func (t Ticket) pricedAs() string {
	if t.money != nil {
		return t.money.model
	}
	if _, costs := usdOf(t.request().Cost); !costs || t.resource.price == nil {
		return ""
	}
	return t.request().priceModel()
}

// joinReceipt appends the model to a receipt in a ticket's id, so that another process can price the usage:
// RESOURCE.SESSION-N~RECEIPT~MODEL. Without a budget the receipt is empty.
func joinReceipt(receipt, model string) string {
	if model == "" {
		return receipt
	}
	return receipt + ticketid.ReceiptSep + base64.RawURLEncoding.EncodeToString([]byte(model))
}

// cutReceipt is the inverse of joinReceipt. A model that is not valid base64 is returned as it is and has no known
// price.
func cutReceipt(text string) (receipt, model string) {
	receipt, coded, _ := strings.Cut(text, ticketid.ReceiptSep)
	plain, err := base64.RawURLEncoding.DecodeString(coded)
	if err != nil {
		return receipt, coded
	}
	return receipt, string(plain)
}

// CountNowhere returns the units of a list that neither a limit of the resource nor a budget counts, and the units that
// its limits count.
func (g inside) CountNowhere(resource string, list []Amount) (nowhere, counted []string) {
	r := g.resources[resource]
	if r == nil {
		return nil, nil
	}
	counted = slices.Sorted(slices.Values(r.counts))
	for _, a := range list {
		if !slices.Contains(counted, a.Unit) && !slices.Contains(tokenUnits, a.Unit) && a.Unit != Requests && a.Unit != Work && a.Unit != USD {
			nowhere = append(nowhere, a.Unit)
		}
	}
	return nowhere, counted
}
