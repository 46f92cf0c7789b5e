#!/bin/bash
# Formatting of C, syntax of shell and Python, tables that repeat others. Prints nothing but what is wrong.
#
#   lint.sh                    check (PY: a Python with ruff in it)
#   lint.sh --format [FILE…]   format the C sources instead, or these alone
set -euo pipefail
cd "$(dirname "$0")/.."

# What git knows or would take; without git, what lies there.
files() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -co --exclude-standard -- "$@"
	else
		local pattern
		for pattern in "$@"; do
			find . -path ./build -prune -o -type f -path "./$pattern" -print
		done
	fi | sort | while IFS= read -r file; do
		[[ -e $file ]] && printf '%s\n' "$file"
	done
}

mapfile -t sources < <(files '*.c' '*.h')
mapfile -t scripts < <(files '*.sh' .ci/run)
# The cases are whole programs as people write them: several statements on a line.
mapfile -t python < <(files '*.py' | grep -v '^tests/cases/\|^./tests/cases/')

if [[ ${1:-} == --format ]]; then
	(($# == 1)) || sources=("${@:2}")
	((${#sources[@]} == 0)) || clang-format -i "${sources[@]}"
	exit
fi

bad=0
PY=${PY:-$(scripts/venv.sh)}

fail() {
	echo "lint: $*" >&2
	bad=1
}

if ((${#sources[@]})); then
	clang-format --dry-run -Werror --ferror-limit=3 "${sources[@]}" || fail "make format mends the above"
fi
for script in "${scripts[@]}"; do
	bash -n "$script" || fail "$script"
	[[ -x $script ]] || fail "$script is not executable"
done
if ((${#python[@]})); then
	"$PY" -m ruff check --quiet --isolated --no-cache --select E4,E7,E9,F --ignore E741 --target-version py39 \
		"${python[@]}" || fail "ruff"
fi
# A text with a machine's path in it is wrong everywhere else.
mapfile -t texts < <(files '*.[ch]' '*.def' '*.md' '*.py' '*.sh' '*.mk' Makefile)
if ((${#texts[@]})) && grep -nIE '/(home|root|work)/[a-z]' "${texts[@]}"; then
	fail "paths of one machine"
fi
if [[ -x scripts/format_doc.sh ]]; then
	scripts/format_doc.sh --check || fail "traces/FORMAT.md is not current: scripts/format_doc.sh"
fi
# The README's table of knobs has a row for each, with its default.
if [[ -e traces/knobs.def ]]; then
	while read -r name default; do
		default=${default:+\`$default\`}
		grep -qF "| \`TARE_$name\` | ${default:-none} |" README.md ||
			fail "README.md: no row for TARE_$name with its default, ${default:-none}"
	done < <(sed -nE 's/^KNOB\(([A-Z_]+),[^"]*"([^"]*)".*/\1 \2/p' traces/knobs.def)
fi
((bad)) || echo "lint: fine"
exit $bad
