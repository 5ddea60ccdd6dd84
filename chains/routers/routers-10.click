// 10 routers between two networks, in a row.
require(library router.clickinc)

r1 :: Router(MAC 02:00:00:00:01:01);
r2 :: Router(MAC 02:00:00:00:02:01);
r3 :: Router(MAC 02:00:00:00:03:01);
r4 :: Router(MAC 02:00:00:00:04:01);
r5 :: Router(MAC 02:00:00:00:05:01);
r6 :: Router(MAC 02:00:00:00:06:01);
r7 :: Router(MAC 02:00:00:00:07:01);
r8 :: Router(MAC 02:00:00:00:08:01);
r9 :: Router(MAC 02:00:00:00:09:01);
r10 :: Router(MAC 02:00:00:00:0a:01);

FromDevice(inside) -> [0] r1;
FromDevice(outside) -> [1] r10;
r1 [1] -> [0] r2; r2 [0] -> [1] r1;
r2 [1] -> [0] r3; r3 [0] -> [1] r2;
r3 [1] -> [0] r4; r4 [0] -> [1] r3;
r4 [1] -> [0] r5; r5 [0] -> [1] r4;
r5 [1] -> [0] r6; r6 [0] -> [1] r5;
r6 [1] -> [0] r7; r7 [0] -> [1] r6;
r7 [1] -> [0] r8; r8 [0] -> [1] r7;
r8 [1] -> [0] r9; r9 [0] -> [1] r8;
r9 [1] -> [0] r10; r10 [0] -> [1] r9;
r1 [0] -> Queue -> ToDevice(inside);
r10 [1] -> Queue -> ToDevice(outside);
