// The same gateway with a firewall that lets all out: what the lists are measured against.
require(library gateway.clickinc)

g :: Gateway(192.0.2.1, ACL allow all);
FromDevice(inside) -> [0] g;
FromDevice(outside) -> [1] g;
g [0] -> Queue -> ToDevice(inside);
g [1] -> Queue -> ToDevice(outside);
