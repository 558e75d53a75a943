//go:build tools

// Package tools pins the version of Pebble.
package tools

import _ "github.com/letsencrypt/pebble/v2/cmd/pebble"
