// 10 routers in a row that answer: each hop of traceroute is one of them, and ping of a packet that is too long for the sixth link says so.
require(library hop.clickinc)

r1 :: Hop(MAC 02:00:00:00:01:01, IN 10.0.0.254, OUT 10.255.1.1, INMAC 02:00:00:00:00:02, OUTMAC 02:00:00:00:02:01, MTU 1500);
r2 :: Hop(MAC 02:00:00:00:02:01, IN 10.255.1.2, OUT 10.255.2.1, INMAC 02:00:00:00:01:01, OUTMAC 02:00:00:00:03:01, MTU 1500);
r3 :: Hop(MAC 02:00:00:00:03:01, IN 10.255.2.2, OUT 10.255.3.1, INMAC 02:00:00:00:02:01, OUTMAC 02:00:00:00:04:01, MTU 1500);
r4 :: Hop(MAC 02:00:00:00:04:01, IN 10.255.3.2, OUT 10.255.4.1, INMAC 02:00:00:00:03:01, OUTMAC 02:00:00:00:05:01, MTU 1500);
r5 :: Hop(MAC 02:00:00:00:05:01, IN 10.255.4.2, OUT 10.255.5.1, INMAC 02:00:00:00:04:01, OUTMAC 02:00:00:00:06:01, MTU 1500);
r6 :: Hop(MAC 02:00:00:00:06:01, IN 10.255.5.2, OUT 10.255.6.1, INMAC 02:00:00:00:05:01, OUTMAC 02:00:00:00:07:01, MTU 1000);
r7 :: Hop(MAC 02:00:00:00:07:01, IN 10.255.6.2, OUT 10.255.7.1, INMAC 02:00:00:00:06:01, OUTMAC 02:00:00:00:08:01, MTU 1500);
r8 :: Hop(MAC 02:00:00:00:08:01, IN 10.255.7.2, OUT 10.255.8.1, INMAC 02:00:00:00:07:01, OUTMAC 02:00:00:00:09:01, MTU 1500);
r9 :: Hop(MAC 02:00:00:00:09:01, IN 10.255.8.2, OUT 10.255.9.1, INMAC 02:00:00:00:08:01, OUTMAC 02:00:00:00:0a:01, MTU 1500);
r10 :: Hop(MAC 02:00:00:00:0a:01, IN 10.255.9.2, OUT 198.51.100.254, INMAC 02:00:00:00:09:01, OUTMAC 02:00:00:00:01:02, MTU 1500);

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
