#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return DROP_BECAUSE("no flow") + DROP_BECUSE(x);
}
//> drop_with_text.c:6:35: error: call to undeclared function 'DROP_BECUSE'; ISO C99 and later do not support implicit function declarations [-Wimplicit-function-declaration]
//> drop_with_text.c: clang does not compile it
//> help: define the function in this file, or spell it as the headers of millrace/ do
