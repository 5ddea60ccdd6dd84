// 3 routers between two networks, in a row.
require(library router.clickinc)

r1 :: Router(MAC 02:00:00:00:01:01);
r2 :: Router(MAC 02:00:00:00:02:01);
r3 :: Router(MAC 02:00:00:00:03:01);

FromDevice(inside) -> [0] r1;
FromDevice(outside) -> [1] r3;
r1 [1] -> [0] r2; r2 [0] -> [1] r1;
r2 [1] -> [0] r3; r3 [0] -> [1] r2;
r1 [0] -> Queue -> ToDevice(inside);
r3 [1] -> Queue -> ToDevice(outside);
