// 10 NAPTs, one behind the other: the nested NAT of carriers (RFC 6888).
require(library napt.clickinc)

n1 :: Napt(192.0.2.1, MAC 02:00:00:00:01:01);
n2 :: Napt(192.0.2.2, MAC 02:00:00:00:02:01);
n3 :: Napt(192.0.2.3, MAC 02:00:00:00:03:01);
n4 :: Napt(192.0.2.4, MAC 02:00:00:00:04:01);
n5 :: Napt(192.0.2.5, MAC 02:00:00:00:05:01);
n6 :: Napt(192.0.2.6, MAC 02:00:00:00:06:01);
n7 :: Napt(192.0.2.7, MAC 02:00:00:00:07:01);
n8 :: Napt(192.0.2.8, MAC 02:00:00:00:08:01);
n9 :: Napt(192.0.2.9, MAC 02:00:00:00:09:01);
n10 :: Napt(192.0.2.10, MAC 02:00:00:00:0a:01);

FromDevice(inside) -> [0] n1;
FromDevice(outside) -> [1] n10;
n1 [1] -> [0] n2; n2 [0] -> [1] n1;
n2 [1] -> [0] n3; n3 [0] -> [1] n2;
n3 [1] -> [0] n4; n4 [0] -> [1] n3;
n4 [1] -> [0] n5; n5 [0] -> [1] n4;
n5 [1] -> [0] n6; n6 [0] -> [1] n5;
n6 [1] -> [0] n7; n7 [0] -> [1] n6;
n7 [1] -> [0] n8; n8 [0] -> [1] n7;
n8 [1] -> [0] n9; n9 [0] -> [1] n8;
n9 [1] -> [0] n10; n10 [0] -> [1] n9;
n1 [0] -> Queue -> ToDevice(inside);
n10 [1] -> Queue -> ToDevice(outside);
