/* SPDX-License-Identifier: MIT */
/*
 * mk.h - the MultiKron board for programs that carry their own measurement probes.
 *
 *	#include <mk.h>                         cc prog.c -lmk
 *
 *	MK_DEFAULT_MAP();                       once, at the start
 *	mk_ts1 = SEND_EVENT;                    a Trace sample of filter level 1
 *	mk_rs2 = event;                         a Resource sample of level 2
 *
 * Every register is an lvalue: reading and writing it is one access to the board.  With a real
 * board these are plain loads and stores to its PCI address space; with an emulated one
 * MK_DEFAULT_MAP() arranges that each of them becomes a bus cycle of the emulator (libmk(3)).
 * Either way the board lies at MK_BASE.
 *
 * C and C++; gcc and clang on x86-64 Linux.  Sources: NISTIR 5571, tables B1-B7 (the chip), and
 * NISTIR 5993, tables 1 and 2 (the PCI board).  Word numbers and bits are those of the tables.
 */
#ifndef MK_H
#define MK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the library ---- */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Map a board at MK_BASE.  name: of an emulated board, which is made where there is none, or
 * the path of a device or file (with a slash).  NULL: /dev/mk0 where there is one, else the
 * emulated board "default"; $KRON_BOARD, if it is set, has a path instead of the one or a name
 * instead of the other.  A board as after a reset is set up by mk_init().  When a board is
 * mapped already, that is all right if it is the same, and -EBUSY if it is another.
 *
 * 0, or a negative errno value; mk_error() then has the sentence.  To be called before threads
 * that block SIGSEGV are started.
 */
int mk_map(const char *name);

/* What went wrong in the last mk_map() or mk_external(): one sentence without a full stop. */
const char *mk_error(void);

/*
 * Set the mapped board up as the report recommends ("Default Configuration"): board reset,
 * Configuration Register 003201, memory address pointer 0, all filter levels on, Source Address
 * Register 0 = the process id, with the board's node above it (kron board create --node), sampling on.
 */
void mk_init(void);

/*
 * What would be a signal on the connector's X0 to X15: the level of the external input of Resource
 * Counter `input` (modes MK_MODE_EXTERNAL and MK_MODE_GATED), on an emulated board.
 * 0; -ENODEV: no board is mapped; -ENOTSUP: it is a real one, which has a connector; -EINVAL; -EIO.
 */
#define MK_LOW 0
#define MK_HIGH 1
#define MK_TOGGLE 2
int mk_external(unsigned input, int level);

/* Take the board out of this process again. */
void mk_unmap(void);

#ifdef __cplusplus
}
#endif

/* Map the board or end the program with a sentence on standard error. */
static inline void mk_default_map(void)
{
	if (mk_map(0) < 0) {
		fprintf(stderr, "libmk: %s\n", mk_error());
		exit(1);
	}
}
#define MK_DEFAULT_MAP() mk_default_map()

/* ---- address map (NISTIR 5993, Table 1) ---- */

#define MK_BASE 0x6b000000u /* the 32 MiB of the board's address space */
#define MK_SIZE 0x02000000u
#define MK_CHIP 0x00001000u /* the chip's 128 words */
#define MK_VC 0x00004000u   /* MultiKron_vc, if installed */
#define MK_MEMORY 0x01000000u
#define MK_MEMORY_WORDS 0x00400000u

/* The board takes 32- and 64-bit accesses at any multiple of four. */
typedef volatile uint32_t __attribute__((may_alias)) mk_word32;
typedef volatile uint64_t __attribute__((may_alias, aligned(4))) mk_word64;

/* What lies at a byte offset of the board; what lies at a word of the chip. */
#define MK_AT(offset) (*(mk_word32 *)(uintptr_t)(MK_BASE + (offset)))
#define MK_AT_64(offset) (*(mk_word64 *)(uintptr_t)(MK_BASE + (offset)))
#define MK_WORD(word) MK_AT(MK_CHIP + 4u * (word))
#define MK_WORD_64(word) MK_AT_64(MK_CHIP + 4u * (word))

/* ---- the board's own registers ---- */

#define mk_board_reset MK_AT(0x1200u) /* any write: reset of board and chips */
#define mk_config MK_AT(0x1204u)      /* MK_CONFIG_* */
#define mk_map_pointer MK_AT(0x1208u) /* the next free word of memory; 24 bits */
#define mk_test MK_AT(0x120cu)        /* TEST Operation */
/* Local memory: mk_memory[0] to mk_memory[MK_MEMORY_WORDS - 1]. */
#define mk_memory ((mk_word32 *)(uintptr_t)(MK_BASE + MK_MEMORY))

/* ---- the chip's registers (Table B4) ---- */

#define mk_reset MK_WORD(0u) /* any write: the chip's software reset */
#define mk_csr MK_WORD(1u)   /* MK_CSR_* */
#define mk_timestamp MK_WORD(2u)
#define mk_timestamp_64 MK_WORD_64(2u) /* 56 bits; the others read as ones */
#define mk_filter MK_WORD(4u)          /* one bit a level */
#define mk_wait MK_WORD(5u)            /* Wait Error Counter; a write zeroes it */
#define mk_overrun MK_WORD(6u)         /* Overrun Error Counter; a write zeroes it */
#define mk_high MK_WORD(7u)            /* High Order 32 Bit Register */

/* Four bits a Resource Counter, MK_FIELD(); a zero field changes nothing. */
#define mk_enable MK_WORD(8u)
#define mk_enable_64 MK_WORD_64(8u)
#define mk_mode MK_WORD(10u)
#define mk_mode_64 MK_WORD_64(10u)
#define mk_clock MK_WORD(12u)
#define mk_clock_64 MK_WORD_64(12u)

/* Test mode only. */
#define mk_increment_timestamp MK_WORD(16u)
#define mk_increment_wait MK_WORD(17u)
#define mk_increment_overrun MK_WORD(18u)
#define mk_network_off MK_WORD(19u)
#define mk_network_on MK_WORD(20u)
#define mk_advance MK_WORD(21u)
#define mk_fifo ((mk_word32 *)(uintptr_t)(MK_BASE + 0x1064u)) /* groups A-E: mk_fifo[0-4] */

/* Source Address Registers, one a CPU ID line. */
#define mk_source ((mk_word32 *)(uintptr_t)(MK_BASE + 0x1080u))
#define mk_source0 mk_source[0]
#define mk_source1 mk_source[1]
#define mk_source2 mk_source[2]
#define mk_source3 mk_source[3]
#define mk_source4 mk_source[4]
#define mk_source5 mk_source[5]
#define mk_source6 mk_source[6]
#define mk_source7 mk_source[7]

/*
 * Resource Counters: mk_counter[i] reads with copy, mk_increment[i] without copy when it is
 * read, and increments when it is written.  A pair in double precision is one 64-bit counter.
 */
#define mk_counter ((mk_word32 *)(uintptr_t)(MK_BASE + 0x1100u))
#define mk_counter_64(i) MK_WORD_64(64u + (i))
#define mk_increment ((mk_word32 *)(uintptr_t)(MK_BASE + 0x1140u))
#define mk_increment_64(i) MK_WORD_64(80u + (i))

/*
 * MultiKron_vc, if installed: its registers are named as those above.  16 of its 8,192 counters are in the
 * chip, page mk_vc_page; mk_vc_count = n selects the page of counter n and increments it, if
 * it is enabled and its mode is software.
 */
#define MK_VC_WORD(word) MK_AT(MK_VC + 4u * (word))
#define MK_VC_WORD_64(word) MK_AT_64(MK_VC + 4u * (word))
#define MK_VC_COUNTERS 8192u

#define mk_vc_reset MK_VC_WORD(0u)
#define mk_vc_csr MK_VC_WORD(1u) /* MK_CSR_MODE32, _MODE64, _WAIT_STATES, _WAIT_MEM */
#define mk_vc_timestamp MK_VC_WORD(2u)
#define mk_vc_timestamp_64 MK_VC_WORD_64(2u) /* 64 bits */
#define mk_vc_high MK_VC_WORD(7u)            /* a holding register of its own */
#define mk_vc_enable MK_VC_WORD(8u)
#define mk_vc_enable_64 MK_VC_WORD_64(8u)
#define mk_vc_mode MK_VC_WORD(10u)
#define mk_vc_mode_64 MK_VC_WORD_64(10u)
#define mk_vc_clock MK_VC_WORD(12u)
#define mk_vc_clock_64 MK_VC_WORD_64(12u)
#define mk_vc_page MK_VC_WORD(14u) /* 0 to 511 */
#define mk_vc_count MK_VC_WORD(15u)
#define mk_vc_counter ((mk_word32 *)(uintptr_t)(MK_BASE + MK_VC + 0x100u))
#define mk_vc_increment ((mk_word32 *)(uintptr_t)(MK_BASE + MK_VC + 0x140u))

/* ---- samples: the data written is the sample's user data ---- */

#define mk_ts(level) MK_WORD(96u + (level)) /* Trace sample, level 0-15 */
#define mk_ts_64(level) MK_WORD_64(96u + (level))
#define mk_rs(level) MK_WORD(112u + (level)) /* Resource sample */
#define mk_rs_64(level) MK_WORD_64(112u + (level))

#define mk_ts0 MK_WORD(96u)
#define mk_ts1 MK_WORD(97u)
#define mk_ts2 MK_WORD(98u)
#define mk_ts3 MK_WORD(99u)
#define mk_ts4 MK_WORD(100u)
#define mk_ts5 MK_WORD(101u)
#define mk_ts6 MK_WORD(102u)
#define mk_ts7 MK_WORD(103u)
#define mk_ts8 MK_WORD(104u)
#define mk_ts9 MK_WORD(105u)
#define mk_ts10 MK_WORD(106u)
#define mk_ts11 MK_WORD(107u)
#define mk_ts12 MK_WORD(108u)
#define mk_ts13 MK_WORD(109u)
#define mk_ts14 MK_WORD(110u)
#define mk_ts15 MK_WORD(111u)

#define mk_ts0_64 MK_WORD_64(96u)
#define mk_ts1_64 MK_WORD_64(97u)
#define mk_ts2_64 MK_WORD_64(98u)
#define mk_ts3_64 MK_WORD_64(99u)
#define mk_ts4_64 MK_WORD_64(100u)
#define mk_ts5_64 MK_WORD_64(101u)
#define mk_ts6_64 MK_WORD_64(102u)
#define mk_ts7_64 MK_WORD_64(103u)
#define mk_ts8_64 MK_WORD_64(104u)
#define mk_ts9_64 MK_WORD_64(105u)
#define mk_ts10_64 MK_WORD_64(106u)
#define mk_ts11_64 MK_WORD_64(107u)
#define mk_ts12_64 MK_WORD_64(108u)
#define mk_ts13_64 MK_WORD_64(109u)
#define mk_ts14_64 MK_WORD_64(110u)
#define mk_ts15_64 MK_WORD_64(111u)

#define mk_rs0 MK_WORD(112u)
#define mk_rs1 MK_WORD(113u)
#define mk_rs2 MK_WORD(114u)
#define mk_rs3 MK_WORD(115u)
#define mk_rs4 MK_WORD(116u)
#define mk_rs5 MK_WORD(117u)
#define mk_rs6 MK_WORD(118u)
#define mk_rs7 MK_WORD(119u)
#define mk_rs8 MK_WORD(120u)
#define mk_rs9 MK_WORD(121u)
#define mk_rs10 MK_WORD(122u)
#define mk_rs11 MK_WORD(123u)
#define mk_rs12 MK_WORD(124u)
#define mk_rs13 MK_WORD(125u)
#define mk_rs14 MK_WORD(126u)
#define mk_rs15 MK_WORD(127u)

#define mk_rs0_64 MK_WORD_64(112u)
#define mk_rs1_64 MK_WORD_64(113u)
#define mk_rs2_64 MK_WORD_64(114u)
#define mk_rs3_64 MK_WORD_64(115u)
#define mk_rs4_64 MK_WORD_64(116u)
#define mk_rs5_64 MK_WORD_64(117u)
#define mk_rs6_64 MK_WORD_64(118u)
#define mk_rs7_64 MK_WORD_64(119u)
#define mk_rs8_64 MK_WORD_64(120u)
#define mk_rs9_64 MK_WORD_64(121u)
#define mk_rs10_64 MK_WORD_64(122u)
#define mk_rs11_64 MK_WORD_64(123u)
#define mk_rs12_64 MK_WORD_64(124u)
#define mk_rs13_64 MK_WORD_64(125u)
#define mk_rs14_64 MK_WORD_64(126u)
#define mk_rs15_64 MK_WORD_64(127u)

/* ---- CSR (Table B1): a one in a write commands, zeros do nothing ---- */

#define MK_CSR_SAMPLING 0x0001u    /* enable sampling; read: it is enabled */
#define MK_CSR_STOP 0x0002u        /* disable sampling */
#define MK_CSR_WAIT 0x0004u        /* wait on a full FIFO or busy shadow registers */
#define MK_CSR_DISCARD 0x0008u     /* discard the sample instead */
#define MK_CSR_READ_WAIT 0x0010u   /* read-with-copy waits for the shadow registers */
#define MK_CSR_READ_NOWAIT 0x0020u /* it returns bad data instead */
#define MK_CSR_FIFO_FULL 0x0040u   /* from here on to be read only */
#define MK_CSR_SHADOW_BUSY 0x0080u
#define MK_CSR_OVERRUN 0x0100u
#define MK_CSR_SHADOW_OVERRUN 0x0200u
#define MK_CSR_BIT161 0x0400u
#define MK_CSR_WAIT_STATES 0x1000u
#define MK_CSR_WAIT_MEM 0x2000u /* MultiKron_vc */
#define MK_CSR_MODE32 0x4000u   /* 32-bit mode: bits 32-63 of input come from mk_high */
#define MK_CSR_MODE64 0x8000u   /* 64-bit mode */

/* ---- Configuration Register (Table 2) ---- */

#define MK_CONFIG_CPU_ID 0x000000ffu
#define MK_CONFIG_TEST 0x00000100u
#define MK_CONFIG_LOCAL 0x00000200u
#define MK_CONFIG_EXT_CPU 0x00000400u
#define MK_CONFIG_WAIT_CPU 0x00000800u
#define MK_CONFIG_TESTB 0x00001000u
#define MK_CONFIG_MK_OE 0x00002000u
#define MK_CONFIG_WRAPB 0x00004000u
#define MK_CONFIG_EN_EXT 0x00008000u
#define MK_CONFIG_DIS_STATE 0x00010000u
#define MK_CONFIG_TS_RATIO 0x00040000u
#define MK_CONFIG_DIV2 0x00080000u
#define MK_CONFIG_WAIT_MEM 0x00100000u
#define MK_CONFIG_V_NUM 0xff000000u
#define MK_CONFIG_DEFAULT 0x00003201u

/* The memory address pointer's word, and how often it has wrapped. */
#define MK_MAP_WORD(pointer) ((pointer)&0x003fffffu)
#define MK_MAP_WRAPS(pointer) (((pointer) >> 22) & 3u)

/* ---- the Resource Counters' fields (Tables B5-B7) ---- */

#define MK_FIELD(counter, value) ((uint64_t)(value) << 4 * (counter))
#define MK_ALL_FIELDS(value) (UINT64_C(0x1111111111111111) * (value))

#define MK_ENABLE_OFF 1u
#define MK_ENABLE_ON 2u
#define MK_ENABLE_RESET 3u /* from zero */

#define MK_MODE_CLOCK 1u    /* an internal clock, mk_clock says which */
#define MK_MODE_SOFTWARE 2u /* writes to mk_increment */
#define MK_MODE_GATED 3u    /* an internal clock while the external signal is high */
#define MK_MODE_EXTERNAL 4u /* rising edges of the external signal */
#define MK_MODE_DOUBLE 8u   /* and this, on even counters: 64 bits with the next */

#define MK_CLOCK_NODE 1u
#define MK_CLOCK_NODE_10 2u
#define MK_CLOCK_NODE_100 3u
#define MK_CLOCK_TIMESTAMP 4u

/* ---- samples in local memory and in mk.dat (Table B2), five or 21 words ---- */

#define MK_TRACE_WORDS 5u
#define MK_RESOURCE_WORDS 21u
/* Of a sample's first word: */
#define MK_HEAD_CPU(head) ((head) >> 29)
#define MK_HEAD_TYPE(head) ((head) >> 27 & 3u) /* MK_TYPE_* */
#define MK_HEAD_SHADOW_OVERFLOW 0x04000000u
#define MK_HEAD_FIFO_OVERFLOW 0x02000000u
#define MK_HEAD_TIME 0x00ffffffu /* timestamp 55..32 */
#define MK_TYPE_TRACE 2u
#define MK_TYPE_RESOURCE 3u

#endif
