#!/bin/bash
# Installs the packages that are missing, with apt where that is allowed; otherwise prints the one
# command to run and fails. Does nothing, quickly, when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { missing+=("$@"); }
tool() { command -v "$1" >/dev/null || need "$2"; }
# In /usr/include, or in its folder for the architecture.
header() {
	[[ -e /usr/include/$1 || -e /usr/local/include/$1 ]] ||
		compgen -G "/usr/include/*-linux-gnu/$1" >/dev/null || need "$2"
}

tool make make
tool git git
tool pkg-config pkg-config
tool clang-format clang-format
tool gcc gcc
[[ -e /usr/include/stdio.h ]] || need libc6-dev
header zstd.h libzstd-dev
header jansson.h libjansson-dev
header cmocka.h libcmocka-dev
header elfutils/libdwfl.h libdw-dev

# The fuzzers need clang with its own runtime libraries, which are a package of its version.
if command -v clang >/dev/null; then
	runtime=$(clang -print-file-name=lib)
	compgen -G "${runtime%/lib}/lib/linux/libclang_rt.fuzzer*" >/dev/null ||
		compgen -G "$runtime/*/libclang_rt.fuzzer*" >/dev/null ||
		need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
else
	need clang clang-runtime
fi

# A Python that can make virtual environments; its version decides nothing here.
scripts/venv.sh --find >/dev/null 2>&1 || need python3 python3-venv

((${#missing[@]})) || exit 0

# What single tests are skipped without comes along where something has to be installed anyway.
optional=()
compgen -G "/usr/lib/*-linux-gnu/libjemalloc.so.?" >/dev/null || optional+=(libjemalloc2)
compgen -G "/usr/lib/*-linux-gnu/libmimalloc.so.?" >/dev/null || optional+=(libmimalloc2.0)
command -v musl-gcc >/dev/null || optional+=(musl-tools)

if ! command -v apt-get >/dev/null; then
	echo "tare: needed, and not found here (Debian's names): ${missing[*]}" >&2
	echo "tare: install them with this system's package manager, then run make again" >&2
	exit 1
fi

# clang's version, and so the name of its runtime's package, comes from apt's lists.
name_clang_runtime() {
	local i version
	for i in "${!missing[@]}"; do
		[[ ${missing[i]} == clang-runtime ]] || continue
		version=$(apt-cache depends clang 2>/dev/null |
			sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1)
		missing[i]=libclang-rt-$version-dev
		# Up to version 13 the runtime came with the compiler.
		[[ -n $version ]] && apt-cache show "${missing[i]}" >/dev/null 2>&1 ||
			unset "missing[i]"
	done
}

as_root=()
if [[ $EUID != 0 ]]; then
	if ! sudo -n true 2>/dev/null; then
		name_clang_runtime
		echo "tare: packages are missing; run this, then make again:" >&2
		echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
		exit 1
	fi
	as_root=(sudo -n)
fi

echo "tare: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
name_clang_runtime
for package in "${optional[@]}"; do
	apt-cache show "$package" >/dev/null 2>&1 && missing+=("$package")
done
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
