# SPDX-License-Identifier: MIT
# unwind_gdb.py - run inside gdb by unwind.bats: steps through the functions of a traced
# program, instruction by instruction, probes included, and looks at every stack on the way.
# A stack must end in the functions that the program can be in; what stands above them is kron's.
# ruff: noqa: F821
import gdb

PROGRAM = ["inner", "middle", "main"]

for line in ("set pagination off", "set confirm off", "set height 0", "starti", "hbreak *main",
             "continue"):
    gdb.execute(line, to_string=True)


def chain():
    frame, names = gdb.newest_frame(), []
    while frame:
        names.append(frame.name() or "??")
        frame = frame.older()
    return names


def is_possible(names):
    """From main on all that the program called, then kron's own; gdb stops looking at main."""
    if "??" in names or names[-1:] != ["main"]:
        return False
    mine = [n for n in names if n in PROGRAM]
    return mine == PROGRAM[-len(mine):] and names[-len(mine):] == mine


seen, shown = set(), False
steps = in_stubs = bad = 0
while True:
    names = chain()
    steps += 1
    in_stubs += names[0] == "kron_stubs"
    if "main" not in names:
        break
    seen.update(names)
    if not is_possible(names):
        bad += 1
        print("WRONG", hex(gdb.newest_frame().pc()), " ".join(names))
    if names[0] == "kron_stubs" and names[1] == "middle" and in_stubs and not shown:
        # the caller's arguments can be seen through the stub
        value = gdb.newest_frame().older().read_var("x")
        print("x is", int(value))
        shown = True
    if steps == 6000:
        break
    gdb.execute("stepi", to_string=True)
good = steps > 60 and in_stubs > 20 and "inner" in seen and not bad
print("RESULT", "good" if good else "bad")
print(f"{steps} steps, {in_stubs} in stubs, {bad} wrong")
gdb.execute("kill", to_string=True)
