#!/bin/bash
# Makes a virtual environment with what a file requires, once, and prints the path of its Python.
#
#   venv.sh               of requirements.txt: the tests' own
#   venv.sh FILE          of FILE (as seen from the top of the tree)
#   venv.sh FILE PYTHON   of FILE, on top of all that PYTHON, itself of an environment, has
#   venv.sh --find        print the Python that it would be made from
#
# It lives outside the tree, so that checkouts share it and `make clean` keeps it, in a folder named
# after what is in it: a changed file gets a new one. It counts as complete only when its stamp is
# there, which is written last.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prints the real path of a Python that runs and can make environments. A pyenv shim may do neither.
usable() {
	"$1" -c 'import ensurepip, sys, venv; print(sys.executable)' 2>/dev/null
}

find_python() {
	local version candidate
	local pyenv=${PYENV_ROOT:-$HOME/.pyenv}
	if [[ -n ${TARE_PYTHON:-} ]]; then
		usable "$TARE_PYTHON" && return
		echo "tare: TARE_PYTHON=$TARE_PYTHON cannot make a virtual environment" >&2
		return 1
	fi
	# 3.11 is what most of the tests were written on; then the newest. torch $torch needs 3.10.
	for version in 3.11 3.14 3.13 3.12 3.10; do
		for candidate in /usr/bin/python$version "$(command -v python$version || true)" \
			"$pyenv"/versions/$version.*/bin/python$version; do
			[[ -x $candidate ]] && usable "$candidate" && return
		done
	done
	echo "tare: no Python from 3.10 to 3.14 that can make a virtual environment (python3-venv)" >&2
	return 1
}

if [[ ${1:-} == --find ]]; then
	find_python
	exit
fi

requirements=${1:-requirements.txt}
below=${2:-}
python=$([[ $below ]] && usable "$below" || find_python)
hash=$({ "$python" -VV; cat "$requirements"; echo -n "$below"; } | sha256sum | cut -c1-12)
cache=${TARE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tare}
venv=$cache/venv-$hash

if [[ ! -e $venv/complete ]]; then
	mkdir -p "$cache"
	exec 9>"$venv.lock"
	flock 9
	if [[ ! -e $venv/complete ]]; then # still: another make may have made it meanwhile
		echo "tare: making $venv of $requirements (downloads; once)" >&2
		rm -rf "$venv"
		"$python" -m venv "$venv" >&2
		if [[ $below ]]; then
			"$below" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
				>"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
		fi
		"$venv/bin/python" -m pip install -qq --disable-pip-version-check \
			-r "$requirements" >&2
		touch "$venv/complete"
	fi
fi
echo "$venv/bin/python"
