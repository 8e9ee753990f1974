"""Trains for a few steps and looks at what is left; asks for the impossible and looks at the message and that nothing is left.

usage: train_text.py TRAIN_TEXT
"""
import csv
import os
import re
import signal
import subprocess
import sys
import tempfile

program = sys.argv[1]
files = ["loss.csv", "model.safetensors", "report.html"]


def run(*arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def check(condition, *what):
    if not condition:
        sys.exit("FAILED: " + "\n".join(str(w) for w in what))


with tempfile.TemporaryDirectory() as folder:
    text = os.path.join(folder, "text.md")
    with open(text, "w", encoding="utf-8") as file:
        file.write("A line of text that can be learned, number by number.\n" * 400)
    out = os.path.join(folder, "a", "b")

    # Steps, and what they leave.
    status, stdout, stderr = run(text, "--steps", "3", "--out", out)
    check(status == 0, status, stdout, stderr)
    check(sorted(os.listdir(out)) == files, os.listdir(out))
    check(re.search(r"traced \d+ ops, differentiated to \d+ with AdamW, fused into \d+ kernels .*, compiled in \d+ ms, peak memory [\d.]+ MB", stdout), stdout)
    check("\r" not in stdout and "\x1b" not in stdout, "no control characters where there is no terminal", repr(stdout))
    check(stdout.count("step 3 ") == 1 and "after 3 steps" in stdout, stdout)
    with open(os.path.join(out, "loss.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    check([r["step"] for r in rows if r["set"] == "train"] == ["1", "2", "3"], rows)
    with open(os.path.join(out, "report.html"), encoding="utf-8") as file:
        page = file.read()
    check("http" not in page and " src=" not in page and "@import" not in page, "the page needs something from elsewhere")
    for part in ["share of the limit", "GFLOP/s", "Activations", "Gradients", "before fusion", "<svg", "dot_general", "kernel @", "a call holds"]:
        check(part in page, part)

    # No step at all.
    status, stdout, stderr = run(text, "--seconds", "0", "--out", out)
    check(status == 0 and "after 0 steps" in stdout and sorted(os.listdir(out)) == files, stdout, stderr)

    # Ctrl-C.
    interrupted = os.path.join(folder, "interrupted")
    process = subprocess.Popen([program, text, "--seconds", "200", "--out", interrupted], stdout=subprocess.PIPE, text=True)
    while "step " not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    stdout = process.communicate(timeout=120)[0]
    check(process.returncode == 0 and "interrupted" in stdout and sorted(os.listdir(interrupted)) == files, process.returncode, stdout)

    # What cannot be done is said before anything is made.
    nowhere = os.path.join(folder, "nowhere")
    blocked = os.path.join(text, "folder")
    empty, pipe = os.path.join(folder, "empty"), os.path.join(folder, "pipe")
    open(empty, "w").close()
    os.mkfifo(pipe)
    for arguments, message in [
        (["missing.txt", "--out", nowhere], "train_text: there is no file or folder missing.txt"),
        ([text, "--out", blocked], f"train_text: cannot make the folder {blocked}: Not a directory"),
        ([text, "--steps", "many", "--out", nowhere], "train_text: --steps expects a number of at least 0, found `many`"),
        ([pipe, "--out", nowhere], f"train_text: {pipe} is no regular file"),
        (["/dev/zero", "--out", nowhere], "train_text: /dev/zero is no regular file"),
        ([empty, "--out", nowhere], f"train_text: {empty} holds 0 bytes to train on and 0 to validate on; each must be at least 1040"),
    ]:
        status, stdout, stderr = run(*arguments)
        check(status == 1 and stderr.strip() == message and stdout == "", arguments, status, stdout, stderr)
        check(not os.path.exists(nowhere), arguments, "left something")
