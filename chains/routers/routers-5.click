// 5 routers between two networks, in a row.
require(library router.clickinc)

r1 :: Router(MAC 02:00:00:00:01:01);
r2 :: Router(MAC 02:00:00:00:02:01);
r3 :: Router(MAC 02:00:00:00:03:01);
r4 :: Router(MAC 02:00:00:00:04:01);
r5 :: Router(MAC 02:00:00:00:05:01);

FromDevice(inside) -> [0] r1;
FromDevice(outside) -> [1] r5;
r1 [1] -> [0] r2; r2 [0] -> [1] r1;
r2 [1] -> [0] r3; r3 [0] -> [1] r2;
r3 [1] -> [0] r4; r4 [0] -> [1] r3;
r4 [1] -> [0] r5; r5 [0] -> [1] r4;
r1 [0] -> Queue -> ToDevice(inside);
r5 [1] -> Queue -> ToDevice(outside);
