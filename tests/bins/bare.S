/* SPDX-License-Identifier: MIT */
/*
 * bare.S - hand-written assembly without frame information, with data between its functions: a text, a table of
 * jumps, bytes that look like a function, and a text right after a call.  It checks that all of that is as it
 * was, and exits 0.  Calls:
 *
 *   work 55   choose 10   check 10   apply 1   callback 1   twice 4   after 1   show 1   print 2
 *
 * Functions have symbols of type FUNC; what else is named is data.
 */
	.intel_syntax noprefix
	.text
	.globl	_start
	.type	hello, @object
hello:	.ascii	"all of it was there\n"
hello_end:

	.type	_start, @function
_start:
	xor	r12d, r12d
1:	mov	rdi, r12
	call	work
	mov	rdi, r12
	call	choose
	mov	r13, rax
	call	check
	test	eax, eax
	jne	2f
	inc	r12
	cmp	r12, 10
	jb	1b
	cmp	r13d, -1
	jne	2f
	lea	rdi, callback[rip]
	call	apply
	cmp	eax, 7
	jne	2f
	call	after
	lea	rsi, hello[rip]
	mov	edx, offset hello_end - hello
	call	print
	xor	edi, edi
	jmp	leave
2:	mov	edi, 1
	jmp	leave

	.type	print, @function
print:
	mov	eax, 1
	mov	edi, 1
	syscall
	ret

	.type	work, @function
work:
	test	rdi, rdi
	je	1f
	push	rdi
	dec	rdi
	call	work
	pop	rdi
	add	rax, rdi
	ret
1:	xor	eax, eax
	ret

	.type	choices, @object
	.balign	8
choices:
	.quad	3f, 4f, 5f
	.byte	0x90, 0x90, 0x90, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc
	.quad	0, 0

	.type	choose, @function
choose:
	cmp	rdi, 2
	ja	6f
	jmp	qword ptr choices[rdi*8]
3:	mov	edi, 1
	jmp	twice
4:	mov	edi, 2
	call	twice
	add	eax, 1
	ret
5:	mov	edi, 3
	call	twice
	mov	rdi, rax
	jmp	twice
6:	mov	eax, -1
	ret

	.balign	16
	.type	twice, @function
twice:
	push	rbx
	lea	eax, [rdi+rdi]
	pop	rbx
	ret

	/* push rbp; mov rbp, rsp; ...; ret: nobody runs it, check() adds it up */
	.balign	16
	.type	fake, @object
fake:	.byte	0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x47, 0x01, 0x5d, 0xc3
	.byte	0x90, 0x90, 0x90, 0x90, 0x90, 0x90

	.balign	16
	.type	check, @function
check:
	lea	rsi, fake[rip]
	xor	eax, eax
	xor	ecx, ecx
1:	movzx	edx, byte ptr [rsi+rcx]
	add	eax, edx
	inc	ecx
	cmp	ecx, 16
	jb	1b
	mov	rsi, qword ptr choices[rip+24]
	movabs	rdx, 0xccccccccc3909090
	sub	rdx, rsi
	sub	eax, 0x7a8
	or	rax, rdx
	setne	al
	movzx	eax, al
	ret

	.type	apply, @function
apply:
	push	rbx
	mov	rbx, rdi
	call	rbx
	pop	rbx
	ret

	.balign	16
	.type	callback, @function
callback:
	push	rbp
	mov	rbp, rsp
	mov	eax, 7
	pop	rbp
	ret

	/* the text follows the call, and show() returns after it */
	.type	after, @function
after:
	call	show
	.ascii	"Hello, all\n\0"
	ret

	.type	show, @function
show:
	pop	rsi
	mov	rdi, rsi
1:	cmp	byte ptr [rdi], 0
	lea	rdi, [rdi+1]
	jne	1b
	push	rdi
	lea	rdx, [rdi-1]
	sub	rdx, rsi
	jmp	print

	.type	leave, @function
leave:
	mov	eax, 60
	syscall
	.type	numbers, @object
numbers: .long	0xc3c3c3c3, 0xe8e8e8e8, 0x55555555
	.section .note.GNU-stack, "", @progbits
