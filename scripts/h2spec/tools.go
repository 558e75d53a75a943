//go:build tools

// Package tools names h2spec as a dependency, so that go.mod and go.sum pin it.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
