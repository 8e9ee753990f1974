# Aliases for fingers; the work is in scripts/ and in CMakePresets.json.
.PHONY: help demo test test-passes test-ci test-all bless bench
help: ## print this list (the default)
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14
demo: ## install what is missing, build the demo and run it
	@scripts/demo
test: ## install what is missing, build, run the whole suite
	@scripts/test
test-passes: ## the pass tests alone (lit and FileCheck over tests/ir)
	@scripts/setup && scripts/build dev burin-opt burin-run burin-bench && python3 scripts/run_tests build/dev --only lit
test-ci: ## the same programs under every configuration, what fits beside the suite (about 20 minutes with the builds)
	@scripts/setup && tests/configurations/run --ci
test-all: ## every configuration, the whole suite on every preset, every f32, a million random programs (hours)
	@scripts/setup && tests/configurations/run --all
bless: ## rewrite the expectations of the pass tests, after running input and output against each other
	@scripts/setup && scripts/build dev burin-opt && python3 scripts/bless build/dev
bench: ## build the benchmarks in release and run them, against JAX and torch where venv-jax and venv-torch exist
	@scripts/bench
