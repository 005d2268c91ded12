/* SPDX-License-Identifier: MIT */
/*
 * refusal.h - why a place gets no probe.  A refusal is a value, counted and shown, never a
 * silent gap.  X(identifier, key for machines, sentence for people)
 */
#ifndef INJECT_REFUSAL_H
#define INJECT_REFUSAL_H

#define REFUSALS(X)                                                                                 \
	X(NONE, "none", "not refused")                                                              \
	X(NO_ROOM, "no-room", "no five bytes that may be displaced together")                       \
	X(BRANCH_TARGET, "branch-target", "a branch may land inside the window")                    \
	X(INDIRECT_JUMP, "indirect-jump",                                                           \
	  "an indirect jump of the function could not be resolved and may land in the window")      \
	X(UNDECODABLE, "undecodable", "the function holds bytes that are not a known instruction")  \
	X(CONTRADICTED, "contradicted",                                                             \
	  "the symbol says that a function starts inside of an instruction of other code")          \
	X(DECODERS_DISAGREE, "decoders-disagree", "the two decoders disagree on an instruction")    \
	X(NOT_RELOCATABLE, "not-relocatable", "an instruction cannot run anywhere else")            \
	X(AFTER_CALL, "after-call", "a return address points into the window")                      \
	X(RSEQ, "rseq", "inside a restartable sequence")                                            \
	X(OVERLAP, "overlap", "another probe holds these bytes")                                    \
	X(AMBIGUOUS_JUMP, "ambiguous-jump",                                                         \
	  "an indirect jump that may be a switch or a tail call")                                   \
	X(LOOP_HEAD, "loop-head", "a loop of the function leads back to its first instruction")     \
	X(JCC_TAIL, "conditional-tail", "a conditional jump that leaves the function when taken")   \
	X(NO_BOUNDS, "no-bounds", "the extent of the function is not known for sure")               \
	X(OUT_OF_FILE, "out-of-file", "the code does not lie in the file")                          \
	X(DATA, "data", "bytes that code reads as data, or that nothing leads to")                  \
	X(SWITCHED_OFF, "switched-off", "the tactics for it are switched off")                      \
	X(OUT_OF_REACH, "out-of-reach", "no free address space within 2 GiB of the code")           \
	X(NO_FUNCTION, "no-function", "the place lies in no known function")                        \
	X(NO_INSN, "no-instruction", "no instruction starts there")                                 \
	X(NOT_REACHED, "not-reached", "control never gets past the instruction")                    \
	X(NO_OPERAND, "no-operand",                                                                 \
	  "the instruction has no memory operand whose address could be taken")                     \
	X(OPERAND_GONE, "operand-gone",                                                             \
	  "the instruction overwrites the registers of its operand's address")                      \
	X(SHARED_RETURN, "shared-return",                                                           \
	  "other branches lead to where the call returns, and not all of them can be told from it") \
	X(COPIED, "copied",                                                                         \
	  "the program copies this code, and what is changed here would go along")                  \
	X(READ, "read", "the runtime that this code belongs to reads it as data")                   \
	X(FOUND_BY, "found-by", "kron finds stopped goroutines by this code")

enum refusal {
#define X(id, key, text) REFUSAL_##id,
	REFUSALS(X)
#undef X
		REFUSAL_COUNT
};

const char *refusal_key(enum refusal r);
const char *refusal_text(enum refusal r);

#endif
