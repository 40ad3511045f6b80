"""A program that behaves as badly as its first argument says; the second one marks its processes."""

import json
import os
import signal
import subprocess
import sys
import time

MANNER, MARK = sys.argv[1:3]
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


DEEDS = {
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
