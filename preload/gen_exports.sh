#!/bin/bash
# Prints the linker's version script for libtare.so.
#
#   gen_exports.sh CC
#
# It says nothing about single names: what is exported is marked TARE_EXPORT where it is defined,
# all else is hidden. It has a version node for each SONAME that cuda_runtime.c, library_calls.c and
# gpu_handover.c stand for. The dynamic linker binds references without a version to a library's first node: in
# TARE are the functions of libraries without versions alone.
set -euo pipefail
cd "$(dirname "$0")/.."

echo 'TARE { local: library_*; };'
for major in 11 12 13; do
	soname=$($1 -E -dM -I. -D_GNU_SOURCE -DCUDART_MAJOR=$major preload/cuda_runtime.c |
		sed -n 's/^#define CUDART_SONAME "\(.*\)"$/\1/p')
	echo "$soname { local: cudart${major}_*; };"
done
printf '#include "preload/library_hooks.def"\n#define NODE(tag, soname, node, ...) @node\nLIBRARIES(NODE)' |
	$1 -E -P -x c -I. - | tr '@' '\n' | sed -n 's/^"\(lib.*\)".*/\1 { };/p'
sed -n 's/^.NODE(\([a-z0-9_]*\), "\([^"]*\)".*/\2 { local: \1_*; };/p' cupti/gpu_handover.c
