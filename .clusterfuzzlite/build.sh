#!/bin/bash -eu
# What to build is the project's own business: fuzz/ossfuzz.sh, which ci/test runs under an imitation of this environment.
exec fuzz/ossfuzz.sh
