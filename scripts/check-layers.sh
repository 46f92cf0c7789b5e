#!/bin/bash
# Proves the include rules: which folder may include which, and which foreign headers it may use.
#
#   check-layers.sh              check this tree, and that a broken one would be noticed
#   check-layers.sh --in FOLDER  check another tree
set -euo pipefail

# folder | headers and tables of ours | foreign headers, libc's apart
rules='
traces     | traces                    | zstd
preload    | preload traces            |
pyhooks    | pyhooks traces preload/runtime.h    |
torchhooks | torchhooks traces preload/runtime.h |
cupti      | cupti traces preload/runtime.h      |
analyzer   | analyzer traces           | jansson elfutils
'
# Headers that are not libc's, by the start of their names. Any other <header> counts as libc's.
foreign='zstd|jansson|elfutils|libunwind|cmocka|Python|pybind|cuda|cupti|cublas|cudnn|nccl|driver_types|torch|c10|ATen'

# Prints "file:line:folder/header" and "file:line:<header>" of every #include below a folder.
includes() {
	local folder=$1
	find "$folder" -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.in' \) -print0 |
		xargs -0 -r grep -HnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]+["<][^">]+[">]' |
		sed -E 's/^([^:]+:[0-9]+:).*include[[:space:]]+"([^"]+)"$/\1\2/
			s/^([^:]+:[0-9]+:).*include[[:space:]]+(<[^>]+>)$/\1\2/' || true
}

check() {
	local bad=0 order='' folder ours theirs line where what allowed ok
	complain() { echo "check-layers: $*" >&2; bad=1; }

	while IFS='|' read -r folder ours theirs; do
		folder=${folder// /}
		[[ -n $folder && -d $folder ]] || continue
		for allowed in $ours; do
			order+="$folder ${allowed%%/*}"$'\n'
		done
		while IFS= read -r line; do
			where=${line%:*} what=${line##*:} ok=
			if [[ $what == '<'* ]]; then
				what=${what//[<>]/} ok=1
				if [[ $what =~ ^($foreign) ]]; then
					ok=
					for allowed in $theirs; do
						[[ $what == "$allowed"* ]] && ok=1
					done
				fi
				[[ $ok ]] || complain "$where: $folder/ may not include <$what>"
				continue
			fi
			[[ $what == */* ]] || what=$folder/$what
			for allowed in $ours; do
				[[ $what == "$allowed" || $what == "$allowed"/* ]] && ok=1
			done
			[[ $what == *..* ]] && ok=
			[[ $ok ]] || complain "$where: $folder/ may not include \"$what\""
		done < <(includes "$folder")
	done <<<"$rules"

	# The rules themselves: no folder reaches itself through another.
	tsort <<<"$order" >/dev/null 2>&1 || complain "the table of rules has a cycle"

	# A file's name says which file is meant, without its folder.
	while IFS= read -r what; do
		complain "two files are called $what"
	done < <(find traces preload pyhooks torchhooks cupti analyzer tests -type f \
		\( -name '*.[ch]' -o -name '*.def' \) -printf '%f\n' 2>/dev/null | sort | uniq -d)

	return $bad
}

# A check that cannot fail proves nothing: break each rule once and see it noticed.
prove() {
	local tree
	tree=$(mktemp -d)
	trap 'rm -rf "$tree"' RETURN
	broken() {
		local file=$1 text=$2
		mkdir -p "$tree/${file%/*}"
		echo "$text" >"$tree/$file"
		if "$self" --in "$tree" >/dev/null 2>&1; then
			echo "check-layers: does not notice $text in $file" >&2
			return 1
		fi
		rm "$tree/$file"
	}
	broken traces/a.c '#include "preload/runtime.h"' &&
		broken traces/a.c '# include <jansson.h>' &&
		broken preload/a.c '#include "analyzer/table.h"' &&
		broken preload/a.c '#include "../pyhooks/eval.h"' &&
		broken pyhooks/a.c '#include "torchhooks/taps.h"' &&
		broken pyhooks/a.c '#include "preload/init.h"' &&
		broken torchhooks/a.h '	#include <Python.h>' &&
		broken analyzer/a.c '#include "preload/cuda_hooks.def"' &&
		broken analyzer/a.c '#include <zstd.h>' || return
	mkdir -p "$tree/traces" "$tree/analyzer"
	echo '#include "traces/schema.h"' >"$tree/analyzer/a.c"
	"$self" --in "$tree" || return
	touch "$tree/traces/a.c"
	! "$self" --in "$tree" >/dev/null 2>&1
}

self=$(realpath "$0")
if [[ ${1:-} == --in ]]; then
	cd "$2"
	check
else
	cd "$(dirname "$0")/.."
	check
	prove
	echo "check-layers: fine"
fi
