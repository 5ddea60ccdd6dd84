# r0 = the sum of the three bytes at r1
	.text
	.globl	main
main:
	r0 = *(u8 *)(r1 + 0)
	r2 = *(u8 *)(r1 + 1)
	r0 += r2
	r2 = *(u8 *)(r1 + 2)
	r0 += r2
	exit
