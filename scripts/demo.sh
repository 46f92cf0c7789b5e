#!/bin/bash
# make demo: traces examples/train.py, on the GPU where there is one and else on the simulated device,
# and prints the report. BUILD and PY come from the Makefile.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$BUILD/demo
rm -rf "$out"
mkdir -p "$out"

on=()
if compgen -G '/dev/nvidia[0-9]*' >/dev/null &&
	device=$("$PY" -c 'import torch; print(torch.cuda.get_device_name(0))' 2>/dev/null); then
	echo "demo: on $device"
elif [[ -x tests/sim/run ]]; then
	echo "demo: no NVIDIA GPU here; on the simulated device (real CUDA build of torch, kernels compute nothing)"
	on=(tests/sim/run --)
else
	echo "demo: no NVIDIA GPU and no simulated device; on the CPU"
fi

echo "demo: LD_PRELOAD=$BUILD/libtare.so python examples/train.py"
TARE_OUTPUT="$out/" LD_PRELOAD="$PWD/$BUILD/libtare.so" "${on[@]}" "$PY" examples/train.py
echo "demo: $BUILD/tare report $out"
"$BUILD/tare" report "$out"
