#include <milrace/nf.h>

ON_PACKET(p)
{
	return DROP;
}
//> include_misspelt.c:1:10: fatal error: 'milrace/nf.h' file not found
//> include_misspelt.c: clang does not compile it
//> help: the header is called `#include <millrace/nf.h>`
