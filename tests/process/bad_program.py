"""A program that behaves as badly as its first argument says; the second one marks its processes."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MANNER, MARK = sys.argv[1:3]
NUMBERS = itertools.count(1)
SLEEP = "import time; time.sleep(600)"


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def nap():
    time.sleep(600)


def spin():
    while True:
        pass


def fork_often():
    """Forks 36 children, each third in a session of its own, or as many as are allowed."""
    for num in range(36):
        try:
            pid = os.fork()
        except OSError as error:
            sys.stderr.write(f"only {num} children: {error.strerror}\n")
            sys.stderr.flush()
            sys.exit(4)
        if not pid:
            if num % 3 == 0:
                os.setsid()
            time.sleep(600)
    time.sleep(600)


def leave():
    sys.stderr.write("out of ideas\n")
    sys.exit(3)


def flood(text):
    while True:
        sys.stdout.write(text)


def flood_stderr():
    for _ in range(16):
        sys.stderr.write("x" * 1_000_000)
    sys.stderr.write("\nand the end\n")
    sys.exit(1)


def close_output():
    os.close(1)
    time.sleep(600)


def ignore_terms():
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(each, signal.SIG_IGN)
    time.sleep(600)


def leave_a_child(new_session):
    subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP, MARK], start_new_session=new_session)
    sys.exit(0)


def keep_a_child_in_a_session():
    subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP, MARK], start_new_session=True)
    time.sleep(600)


def kill_the_supervisor():
    subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP, MARK], start_new_session=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def stop_the_supervisor():
    subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP, MARK], start_new_session=True)
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(600)


def allocate():
    kept = []
    while True:
        kept.append(bytearray(1 << 24))


def open_files():
    kept = []
    while True:
        kept.append(os.open(os.devnull, os.O_RDONLY))


def write_a_file():
    with Path("big").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))


def moan(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def moan_and_sleep():
    moan("where was I?")
    time.sleep(600)


def moan_and_answer():
    moan("x" * 30_000 + f"\nno idea, {next(NUMBERS)}")
    say({"type": "action", "action": "none"})


def tell_the_key(leave):
    key = os.environ["COGEVAL_TEST_API_KEY"]
    moan(f"the key is {key}")
    if leave:
        sys.exit(f"again {key}")
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
    told = f'"type": "action", "model": {json.dumps(key)}, "reply": {{"verb": "{escaped}"}}'
    sys.stdout.write(f"{{{told}}}\n" if next(NUMBERS) == 1 else f"no JSON: {told}\n")  # the second is a retry
    sys.stdout.flush()


DEEDS = {
    "writes": write_a_file,
    "moans_and_sleeps": moan_and_sleep,
    "moans": moan_and_answer,
    "tells": lambda: tell_the_key(False),
    "tells_and_leaves": lambda: tell_the_key(True),
    "says_a_fault": lambda: say({"type": "fault", "detail": os.environ["COGEVAL_TEST_API_KEY"]}),
    "sleeps": nap,
    "spins": spin,
    "forks": fork_often,
    "leaves": leave,
    "garbage": lambda: flood("\x00{[\n"),
    "floods": lambda: flood("x" * 65_536),
    "floods_stderr": flood_stderr,
    "closes": close_output,
    "ignores": ignore_terms,
    "child": lambda: leave_a_child(False),
    "far_child": lambda: leave_a_child(True),
    "far_child_kept": keep_a_child_in_a_session,
    "announces": keep_a_child_in_a_session,
    "patricide": kill_the_supervisor,
    "stops_its_supervisor": stop_the_supervisor,
    "allocates": allocate,
    "opens": open_files,
    "chatty": lambda: [say({"type": "action", "action": None}) for _ in range(3)],
}

if MANNER == "exits_at_once":
    sys.exit(7)
if MANNER == "no_hello":
    nap()
for line in sys.stdin:
    kind = json.loads(line)["type"]
    if kind == "hello":
        say({"type": "ready"})
    elif kind == "observation":
        DEEDS[MANNER]()
    elif kind == "bye" and MANNER == "chatty":
        nap()
