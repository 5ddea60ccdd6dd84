/* A header that the author took from elsewhere. */
static inline __attribute__((always_inline)) __u8 peek(const struct packet *p, __u32 at)
{
	return ((const __u8 *)(long)p->data)[at];
}
