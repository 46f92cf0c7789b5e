#!/bin/bash
# Prints the linker's version script for libtare.so.
#
#   gen_exports.sh CC
#
# It says nothing about single names: what is exported is marked TARE_EXPORT where it is defined,
# all else is hidden. It has a version node for each SONAME that cuda_runtime.c stands for. The
# empty first node catches references without a version, which the dynamic linker binds to a
# library's first one.
set -euo pipefail
cd "$(dirname "$0")/.."

echo 'TARE { };'
for major in 11 12 13; do
	soname=$($1 -E -dM -I. -D_GNU_SOURCE -DCUDART_MAJOR=$major preload/cuda_runtime.c |
		sed -n 's/^#define CUDART_SONAME "\(.*\)"$/\1/p')
	echo "$soname { local: cudart${major}_*; };"
done
