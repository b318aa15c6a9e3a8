#!/bin/bash
# Serves examples/films from build/bin/simile, asks it what a newcomer would ask, prints commands and
# answers, and stops the server. Exits non-zero when anything is not as it should be.
#   DEMO_PROGRAM   the program to show (default: build/bin/simile of this checkout)
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

# say TEXT: what the next command is to show.
say() { printf '\n# %s' "$*"; }

# What the reader would type, quotes included.
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

# Passes on what the server prints until it says that it listens; then all collections are served.
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
# A demonstration leaves nothing behind: what a server measures of the processor goes with the rest.
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
say 'What is like this film?'
show 0 simile similar --title "Toy Story" -k 5
say 'What would this user like that they have not seen?'
show 0 simile recommend --user user_00042 -k 3 --exclude-seen
say 'Only films that pass a filter, which may ask for any of these fields.'
show 0 simile fields
show 0 simile similar --id star-wars-1977 -k 3 --filter 'genres:"Science Fiction" AND year > 1990'
show 1 simile similar --id star-wars-1977 --filter 'genre:"Science Fiction"'
say 'Like this one and unlike that one; the best of each genre; a user whom nobody knows yet.'
show 0 simile similar --title "Toy Story" --unlike toy-story-2-1999 -k 3
show 0 simile similar --title "Toy Story" --group-by genres -k 3
show 0 simile recommend --user somebody-new --fallback newest -k 3
say 'A title that several films share is listed, not guessed.'
show 1 simile similar --title Batman
say 'A name that is not there is refused with the nearest that is.'
show 1 simile recommend --user user_42

if "$python" -c 'import google.protobuf, grpc' 2>/dev/null; then
  say 'The same from Python.'
  show 0 examples/python/make_stubs.sh build/python
  show 0 env PYTHONPATH=build/python "$python" examples/python/client.py "$SIMILE_SERVER"
else
  printf '\n(the Python client needs python3-grpcio and python3-protobuf, which are not installed)\n'
fi

say 'Calls under way are finished first. What the server has logged since it listened:'
typed kill "$server_pid"
kill -TERM "$server_pid"
cat <&3
code=0
wait "$server_pid" || code=$?
server_pid=""
[ "$code" -eq 0 ] || fail "the server ended with $code"
