// One router between two networks, in a row.
require(library router.clickinc)

r1 :: Router(MAC 02:00:00:00:01:01);

FromDevice(inside) -> [0] r1;
FromDevice(outside) -> [1] r1;
r1 [0] -> Queue -> ToDevice(inside);
r1 [1] -> Queue -> ToDevice(outside);
