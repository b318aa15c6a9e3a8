#!/bin/bash
# Serves examples/films, runs the commands that a new user would try, prints commands and answers,
# and stops the server. Exits non-zero when a command does not exit as expected.
#   DEMO_PROGRAM   the program to run (default: build/bin/simile of this checkout)
set -euo pipefail
cd "$(dirname "$0")/.."
program="${DEMO_PROGRAM:-$PWD/build/bin/simile}"
python=/usr/bin/python3  # the one that Debian's python3-grpcio belongs to

work="$(mktemp -d)"
server_pid=""
stop_server() {
  if [ -n "$server_pid" ]; then
    kill -TERM "$server_pid" 2>/dev/null || true
    wait "$server_pid" || true
    server_pid=""
  fi
}
trap 'stop_server; rm -rf "$work"' EXIT

fail() {
  echo "demo: $*" >&2
  exit 1
}

# say TEXT: a comment above the next command.
say() { printf '\n# %s' "$*"; }

# typed WORD...: prints a command line with the quotes that a shell needs.
typed() {
  local word line='$'
  for word in "$@"; do
    case "$word" in
      *\"*) line+=" '$word'" ;;
      *[!A-Za-z0-9_./:=-]*) line+=" \"$word\"" ;;
      *) line+=" $word" ;;
    esac
  done
  printf '\n%s\n' "$line"
}

# show EXIT_CODE COMMAND...: prints the command, runs it, and checks how it ended.
show() {
  local expected="$1" code=0
  shift
  typed "$@"
  "$@" || code=$?
  [ "$code" -eq "$expected" ] || fail "'$*' ended with $code where $expected was expected"
}

simile() { "$program" "$@" 2>&1; }

# Prints the server's output until it listens, when all collections are served.
wait_for_server() {
  local line
  while IFS= read -r -t 60 line <&3; do
    echo "$line"
    case "$line" in "listening on "*) return ;; esac
  done
  fail "the server ended before it listened, or was silent for 60 s"
}

[ -x "$program" ] || fail "$program is not there; \`make build\` makes it"

echo "# simile is ${program#"$PWD/"}. It serves 5,000 films and the tastes of 500 users."
echo '$ simile serve --collection films=examples/films --port 0 --metrics-port 0 &'
mkfifo "$work/output"
# The tuning that the server measures goes to the temporary folder too: the demo leaves no files.
SIMILE_BACKEND_TUNING_CACHE="$work/cpu-tuning.json" \
  "$program" serve --collection films=examples/films --port 0 --port-file "$work/port" \
  --metrics-port 0 >"$work/output" 2>&1 &
server_pid=$!
exec 3<"$work/output"
wait_for_server
SIMILE_SERVER="127.0.0.1:$(cat "$work/port")"
export SIMILE_SERVER

say 'The commands find the server by this variable (without it: localhost:50051).'
typed export "SIMILE_SERVER=$SIMILE_SERVER"
show 0 simile health
show 0 simile list
say 'Which films are like this one?'
show 0 simile similar --title "Toy Story" -k 5
say 'What should this user see next?'
show 0 simile recommend --user user_00042 -k 3 --exclude-seen
say 'Only films that pass a filter; it can test any of these fields.'
show 0 simile fields
show 0 simile similar --id star-wars-1977 -k 3 --filter 'genres:"Science Fiction" AND year > 1990'
show 1 simile similar --id star-wars-1977 --filter 'genre:"Science Fiction"'
say 'Like one film but unlike another; the best of each genre; a user without a profile.'
show 0 simile similar --title "Toy Story" --unlike toy-story-2-1999 -k 3
show 0 simile similar --title "Toy Story" --group-by genres -k 3
show 0 simile recommend --user new-user --cold-start newest -k 3
say 'An ambiguous title lists its candidates.'
show 1 simile similar --title Batman
say 'An unknown name is refused; the message suggests the nearest known one.'
show 1 simile recommend --user user_42

if "$python" -c 'import google.protobuf, grpc' 2>/dev/null; then
  say 'The same from Python.'
  show 0 examples/python/make_stubs.sh build/python
  show 0 env PYTHONPATH=build/python "$python" examples/python/client.py "$SIMILE_SERVER"
else
  printf '\n(the Python client needs python3-grpcio and python3-protobuf, which are not installed)\n'
fi

say 'The server finishes running calls, then stops. Its log since it listened:'
typed kill "$server_pid"
kill -TERM "$server_pid"
cat <&3
code=0
wait "$server_pid" || code=$?
server_pid=""
[ "$code" -eq 0 ] || fail "the server ended with $code"
