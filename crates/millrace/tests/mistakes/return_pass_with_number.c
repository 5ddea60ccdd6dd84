#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return PASS + 7;
}
//> return_pass_with_number.c:6: warning: 67108871 is returned here, which is no verdict: FLOOD, CONSUME and PASS have no number beside them
//> return PASS + 7;
//> help: return FORWARD(port), FLOOD, CONSUME, PASS, DROP or DROP_BECAUSE(reason)
