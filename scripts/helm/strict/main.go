// Reads the objects that a chart renders, from standard input, into Kubernetes' own types. A field that a type does not have, twice or
// of another kind, is an error: `helm template` alone would let it through.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	read := 0
	for _, document := range strings.Split("\n"+string(text), "\n---") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			fail(err)
		}
		if head.Kind == "" {
			continue
		}
		known := map[string]any{
			"ConfigMap":             &core.ConfigMap{},
			"Deployment":            &apps.Deployment{},
			"PersistentVolumeClaim": &core.PersistentVolumeClaim{},
			"Service":               &core.Service{},
		}
		object, is := known[head.Kind]
		if !is {
			fail(fmt.Errorf("%s: not a kind that the chart should have", head.Kind))
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			fail(fmt.Errorf("%s: %w", head.Kind, err))
		}
		read++
	}
	if read == 0 {
		fail(fmt.Errorf("no objects"))
	}
	fmt.Println(read, "objects")
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "strict:", err)
	os.Exit(1)
}
