#include <millrace/nf.h>
PORTS(LAN, WAN);
PARAM(__u32, most, 10);

ON_PACKET(p)
{
	most = 5;
	return DROP;
}
//> parameter_assigned.c:7:7: error: cannot assign to variable 'most' with const-qualified type 'const volatile __u32' (aka 'const volatile unsigned int')
//> parameter_assigned.c: clang does not compile it
//> help: a PARAM is set before start with `--set NAME=VALUE`; what changes is state: a static variable, or MAP, VECTOR …
