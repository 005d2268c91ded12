# SPDX-License-Identifier: MIT
# unwind_gdb.py - run inside gdb by unwind.bats: steps through the function `middle` of a traced
# program, instruction by instruction, probes included, and looks at every stack on the way.
# A stack must end in the functions that the program can be in; what stands above them is kron's.
# ruff: noqa: F821
import gdb

POSSIBLE = (["middle", "main"], ["inner", "middle", "main"])
OURS = ("kron_", "rt_", "slow_", "lane_", "sys", "board_", "chunk_", "mini_")

for line in ("set pagination off", "set confirm off", "set height 0", "starti", "hbreak middle",
             "continue"):
    gdb.execute(line, to_string=True)


def chain():
    frame, names = gdb.newest_frame(), []
    while frame:
        names.append(frame.name() or "??")
        frame = frame.older()
    return names


def stopped_in():
    return gdb.newest_frame().name() or "??"


steps = in_stubs = bad = 0
while True:
    names = chain()
    steps += 1
    in_stubs += names[0] == "kron_stubs"
    if "main" == names[0]:
        break
    if not any(names[-len(p):] == p for p in POSSIBLE) or "??" in names:
        bad += 1
        print("WRONG", hex(gdb.newest_frame().pc()), " ".join(names))
    if names[0] == "kron_stubs" and names[1] == "middle" and in_stubs == 3:
        # the caller's arguments can be seen through the stub
        value = gdb.newest_frame().older().read_var("x")
        print("x is", int(value))
    if steps == 5000:
        break
    gdb.execute("stepi", to_string=True)
print(f"RESULT {'good' if steps > 20 and in_stubs > 5 and not bad else 'bad'}")
print(f"{steps} steps, {in_stubs} in stubs, {bad} wrong")
gdb.execute("kill", to_string=True)
