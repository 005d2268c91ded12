# SPDX-License-Identifier: MIT
# openssl: known answers for all algorithms (evp_test), and every command that `openssl list` names

prepare() {
	fetch openssl && cd "$src" && ./Configure && make build_generated && make -j2 test/libtestutil.a &&
		gcc -O2 -Iinclude -Iapps/include -o evp_test test/evp_test.c test/libtestutil.a -lcrypto
}

setup() { # the library too: most of the code is there
	local lib=/usr/lib/x86_64-linux-gnu/libcrypto.so.3
	program openssl /usr/bin/openssl && program evp_test "$src/evp_test" &&
		program libcrypto.so.3 $lib
}

tests() {
	(cd "$src/test/recipes/30-test_evp_data" && ls ./*.txt) | sed 's|^\./|evp/|'
	openssl list -digest-commands | tr -s ' ' '\n' | sed 's|^|dgst/|'
	openssl list -cipher-commands | tr -s ' ' '\n' | sed 's|^|enc/|'
	printf 'mac/%s\n' HMAC CMAC KMAC-128 KMAC-256 POLY1305 SIPHASH BLAKE2BMAC BLAKE2SMAC
	printf 'sign/%s\n' rsa2048 rsa-pss dsa ec:prime256v1 ec:secp384r1 ec:secp521r1 ec:brainpoolP256r1 ed25519 ed448
	printf 'speed/%s\n' md5 sha1 sha256 sha512 aes-128-cbc aes-256-gcm chacha20-poly1305 camellia-128-cbc
	echo req
	echo tls
}

run() {
	local kind=${1%%/*} name=${1#*/} evp=$src/evp_test ssl=/usr/bin/openssl key
	[ -e "$bin/openssl" ] && evp=$bin/evp_test ssl=$bin/openssl && export LD_LIBRARY_PATH=$bin
	seq 20000 >text
	case $kind in
	evp) probed "$evp" -config "$src/test/default-and-legacy.cnf" "$src/test/recipes/30-test_evp_data/$name" ;;
	dgst) probed "$ssl" dgst -provider legacy -provider default -"$name" text ;;
	mac)
		key=hexkey:000102030405060708090a0b0c0d0e0f
		case $name in
		HMAC) key="$key -digest SHA256" ;;
		CMAC) key="$key -cipher AES-128-CBC" ;;
		POLY1305) key=${key}101112131415161718191a1b1c1d1e1f ;;
		esac
		probed "$ssl" mac -macopt $key -in text "$name"
		;;
	enc)
		key='-K 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f -iv 0f0e0d0c0b0a09080706050403020100'
		probed "$ssl" "$name" -provider legacy -provider default $key -in text -out x 2>err
		echo "$?" && cksum <x && probed "$ssl" "$name" -d -provider legacy -provider default $key -in x 2>>err | cksum
		;;
	speed) # as much as there is time for: what it does is checked, not how fast
		probed "$ssl" speed -seconds 1 -bytes 1024 -evp "$name" >out 2>&1 && tail -1 out | tr -d '0-9.k ' ;;
	sign)
		case $name in
		rsa*) probed "$ssl" genpkey -algorithm "${name%2048}" -pkeyopt rsa_keygen_bits:2048 -out key ;;
		dsa) probed "$ssl" genpkey -genparam -algorithm DSA -pkeyopt dsa_paramgen_bits:1024 -out par &&
			probed "$ssl" genpkey -paramfile par -out key ;;
		ec:*) probed "$ssl" genpkey -algorithm EC -pkeyopt "ec_paramgen_curve:${name#ec:}" -out key ;;
		*) probed "$ssl" genpkey -algorithm "$name" -out key ;;
		esac >/dev/null 2>&1 || return 1
		head -c 1000 text >data && /usr/bin/openssl pkey -in key -pubout -out pub &&
			probed "$ssl" pkeyutl -sign -rawin -inkey key -in data -out sig &&
			/usr/bin/openssl pkeyutl -verify -rawin -pubin -inkey pub -in data -sigfile sig &&
			probed "$ssl" pkeyutl -verify -rawin -pubin -inkey pub -in data -sigfile sig
		;;
	req) probed "$ssl" req -x509 -newkey rsa:2048 -nodes -keyout key -out crt -subj /CN=kron -days 9 2>/dev/null &&
		/usr/bin/openssl verify -CAfile crt crt && probed "$ssl" verify -CAfile crt crt ;;
	tls) # a whole handshake
		/usr/bin/openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out crt -subj /CN=kron -days 9 2>/dev/null
		data=$data.server probed "$ssl" s_server -naccept 1 -accept 0 -key key -cert crt -www >said 2>&1 &
		for _ in $(seq 300); do
			key=$(sed -n 's/^ACCEPT.*:\([0-9]*\)$/\1/p' said) && [ -n "$key" ] && break
			sleep 0.2
		done
		printf 'GET / HTTP/1.0\r\n\r\n' |
			probed "$ssl" s_client -quiet -connect "127.0.0.1:$key" -CAfile crt 2>/dev/null |
			grep -o 'TLS_AES_256_GCM_SHA384' | head -1
		wait
		;;
	esac
}

summary() { # errors name the thread
	sed 's/[0-9A-F]\{12,16\}:error/error/; s/0x[0-9a-f]*/N/; s/RAND_ORDER=[0-9]*//' "$1" | cksum
}
