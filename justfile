# The same verbs as the Makefile, for those who type `just`.

_default:
    @make help

build:
    @make build

ui:
    @make ui

screenshots:
    @make screenshots

demo:
    @make demo

test:
    @make test

kills:
    @make kills

hostile:
    @make hostile

wheel:
    @make wheel

bench:
    @make bench

check-systems:
    @make check-systems

fmt:
    @make fmt

fuzz:
    @make fuzz

dist:
    @make dist

dist-check:
    @make dist-check

package-check:
    @make package-check

container:
    @make container

doc:
    @make doc

# The house rules alone.
tidy:
    @cargo xtask tidy

# Where a knob or metric is written by hand.
walk name:
    @cargo xtask walk {{ name }}

# Rewrite docs/reference.
gen:
    @cargo xtask gen

docs:
    @make docs
