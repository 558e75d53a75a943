# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_shortline_global_optspecs
    string join \n h/help V/version
end

function __fish_shortline_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_shortline_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_shortline_using_subcommand
    set -l cmd (__fish_shortline_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c shortline -n "__fish_shortline_needs_command" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_needs_command" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "serve" -d 'Serve the files below a folder'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "load" -d 'Send the requests of a trace or a generated workload to a server and report response times'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "uplink" -d 'Install, remove or show the kernel\'s priority bands on an interface'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "lab" -d 'Compare servers and policies in experiments'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "sim" -d 'Simulate what policies would do with a trace or with random arrivals'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "gain" -d 'Say what visitors would have gained, from your own access log, or a database\'s from its log'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "model" -d 'Compute what theory expects of a queue'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "gate" -d 'Run a gate in front of a database or an application, so that it does the shortest requests first'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l listen -d 'Accept connections at this address; may be given again [default: 0.0.0.0:8080]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l tls-cert -d 'Speak TLS with this certificate chain (PEM); offers HTTP/2 and HTTP/1.1' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l tls-key -d 'The certificate\'s key (PEM)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l tls-auto -d 'Get certificates for this name by themselves (ACME), and answer for it; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l config -d 'Read options from this TOML file; flags override it, SIGHUP reads it again' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l handover -d 'Take the listening sockets over from the server that runs and has the same path here; it ends when its connections have' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l handover-time-max -d 'Time that responses under way get to finish in a process whose sockets another has taken [default: 1h]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink -d 'The uplink\'s rate, such as 100mbit: responses leave exactly as fast as it drains them. `auto` finds it out while serving; `off` turns scheduling off [default: auto]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-rate-min -d 'The lowest rate that auto may find [default: 100kbit]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l policy -d 'Who is served first: shares (a fair share per client, and the shortest first within it), srpt (the fewest bytes left), fair (each in turn), las (the fewest bytes sent), fifo, or one for research [default: shares]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l burst -d 'What a client may get in a row before its other responses wait behind clients that ask for less (policy shares) [default: 128KiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l aging -d 'Give an eighth of the uplink to responses that have waited X times their expected service time' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l jobs-max -d 'Responses that may wait at once; one more is refused [default: 100000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-loopback -d 'Schedule clients on the loopback interface too [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-device -d 'The uplink\'s interface [default: the one with the address that clients connect to; bands: the only one whose qdisc has bands]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-packet-header -d 'Bytes per packet that RATE counts in addition to its IP bytes [default: 14]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l allow-system-root -d 'Allow ROOT to be a folder of the system, such as / or /etc [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l index -d 'Names tried in a folder, first match wins [default: index.html]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l listing -d 'List folders that have no index file [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l listing-entries-max -d 'The most names listed of one folder [default: 2000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l precompressed -d 'Offer .zst, .br and .gz siblings [default: true]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l compress -d 'Compress on the fly what gains by it: files, all (responses of backends, too) or off [default: files]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l compress-file-size-max -d 'The largest file that is compressed on the fly [default: 8MiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-ca -d 'Ask clients for a certificate from an authority in this file (PEM, one or several)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-auth -d 'What a client without a certificate gets: require (no connection) or request (what others get) [default: require]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-crl -d 'The revocation lists of these authorities (PEM, one of each)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-file-size-max -d 'Keep files up to this size in memory [default: 1MiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-size-max -d 'The size of all files kept in memory together [default: 128MiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-files-max -d 'The most files kept in memory [default: 32768]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-open-files-max -d 'The most larger files kept open, and the most files in memory with a copy in the kernel [default: 256]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l trusted-proxy -d 'Trust proxies in this network to name the client of a request; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-header -d 'The header field in which trusted proxies name the client, such as X-Forwarded-For, Forwarded or X-Real-IP [default: X-Forwarded-For]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-weight -d 'Give each client in a network N shares instead of one; may be given again, the first match counts' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l users-per-address -d 'Give each user behind one address a share, up to N per address. TLS sessions tell users apart, so one that pretends to be many gets as many shares [default: 1]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l user-cookie -d 'Tell the users behind one address apart by this cookie, if a request has it' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l admin -d 'Serve /metrics, /status and /healthz at this address, or at unix:/PATH for this user and its group; never scheduled, keep it private' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l admin-connections-max -d 'The most open connections to the admin address [default: 64]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l admin-host -d 'Answer admin requests for this host name too, besides IP addresses and localhost; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l access-log -d 'Log each response to this file, or to standard output (-)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l log-format -d 'What a line of the access log has: combined (Combined Log Format and times), json, or a text with the variables of nginx\'s log_format, such as \'$remote_addr $status $request_time\' [default: combined]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l access-log-lines-max -d 'The most log lines that wait for the disk; further ones are dropped and counted [default: 8192]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l send-request-id -d 'Tell the client the id of its request in each response, in X-Request-Id [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l otlp -d 'Export a span of requests to this OpenTelemetry collector, by OTLP over HTTP, such as http://127.0.0.1:4318' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l otlp-sample -d 'The part of all traces that is exported, from 0 to 1; what a trusted proxy has recorded is, in any case [default: 0.01]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l connections-max -d 'The most open connections; further ones wait in the kernel [default: 20000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l connections-per-address-max -d 'The most open connections of one address; further ones are closed [default: 4096]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l header-size-max -d 'The largest head of a request, from 8KiB to 1MiB [default: 8KiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l header-fields-max -d 'The most header fields of a request [default: 100]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l header-time-max -d 'Time for a request\'s head, and for a TLS handshake [default: 20s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l idle-time-max -d 'Time a connection may stay open without a request [default: 60s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l stall-time-max -d 'Time a response may make no progress because its client takes nothing [default: 60s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l streams-max -d 'The most HTTP/2 streams of one connection at a time [default: 128]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l disk-reads-max -d 'The most files read from disk at the same time [default: 8]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l compressions-max -d 'The most responses of backends compressed at the same time; further ones leave as they are [default: 64]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l drain -d 'Time that responses under way get to finish after SIGTERM [default: 30s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-directory -d 'The directory of the authority that is asked for certificates, an https URL [default: Let\'s Encrypt\'s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-staging -d 'Ask Let\'s Encrypt\'s authority for tests [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-contact -d 'A mail address for the authority to write to; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-eab-kid -d 'What the authority calls the key of the account that you have there (external account binding)' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-eab-key-file -d 'File with that key, in base64url as the authority shows it' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-state -d 'The folder that keys and certificates are kept in [default: acme in systemd\'s StateDirectory, else /var/lib/shortline/acme]' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-ca -d 'PEM file with the authorities that the directory\'s own certificate may be from [default: the system\'s]' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-key-type -d 'What keys are made for certificates: p256 or p384 (ECDSA) [default: p256]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-challenge -d 'How the authority may check a name: tls-alpn-01 (it looks at port 443) or http-01 (at port 80); may be given again [default: both]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-profile -d 'The profile of the certificates, if the authority has several' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-revoke-replaced -d 'Revoke a certificate when another has taken its place [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-ask -d 'Ask this http or https URL whether a name may have a certificate on demand: `?domain=NAME` is put behind it, and the answer 200 allows it' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-on-demand-names-max -d 'The most names with a certificate on demand [default: 1000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l acme-on-demand-orders-max -d 'The most orders on demand in a minute [default: 10]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l link-mode -d 'How to keep the kernel\'s queue short: auto, paced, slots or off; or bands, to let the kernel order it [default: what --uplink means; slots if only --slots is given]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l growing -d 'Raise a response\'s priority with its age, up to the highest once it has waited X times its service time; replaces --aging' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l slots -d 'Responses that may hold unacknowledged bytes in the kernel; implies link mode slots if no mode is given [default: 2]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l control-band -d 'Give SYN-ACKs and handshakes their own band above all others (bands) [default: true]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l quantum -d 'Body bytes of one grant [default: slots 14480; paced one to three segments, or what passes in 0.1 ms; bands 8192]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l http3 -d 'Speak HTTP/3, too: at the same port of UDP, which the firewall must let through'
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l check -d 'Only check the configuration, with the folders and certificates that it names, and say what it serves; the exit code is 0 if it is sound'
complete -c shortline -n "__fish_shortline_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shortline -n "__fish_shortline_using_subcommand serve" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l target -d 'The server: `http://HOST[:PORT]` or `https://HOST[:PORT]`' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l trace -d 'What to request and when: CSV lines `seconds,path,bytes` (header optional), a log in Common or Combined Log Format, or World Cup 98 binary records, each optionally packed with gzip. The content decides which it is; - is standard input. Unreadable lines are skipped and counted' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l surge -d 'Request SURGE\'s files as in paper 001, 003 or 004: surge-001, surge-003 (the default name), surge-004. Needs --users, or --schedule and --uplink' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l twin -d 'Request files like those in a log of paper 000: world-cup or nasa. Needs --schedule and --uplink' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l write-site -d 'Write the files of --surge or --twin to this folder, for a server to serve, and request nothing' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l users -d 'Closed loop: this many SURGE users. Each fetches a page, rests, and fetches the next, over two connections at a time, or over one persistent connection with --requests-per-connection above 1' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l schedule -d 'The load over time, where 1 is the whole uplink: w1 to w10 (Table I of paper 000), 1.4 (constant), or 25s@0.2,25s@1.2 (in turn). A trace\'s times are scaled to it' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l uplink -d 'The uplink\'s rate: a load of 1 in bytes on the wire, and the base of the slowdown. Without it the base is the least time measured for a response of the same size or larger' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l speed -d 'Speed up the trace\'s arrivals by this factor' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l seconds -d 'Leave out requests that would start later than this [default: no limit for a trace, else 100 s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l seed -d 'Seed of the generated requests. In a trace with whole seconds (logs, World Cup) it spreads the arrivals of a second at random; without a seed they are spread evenly [default: 1]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l out -d 'Write a line per request: at,path,size,received,ok,tries,lag,connect,first_byte, response_time,error; with --source also source, with --users user and request. Times are in seconds from the intended start. With - the lines go to standard output and the summary to standard error. If the name ends in .zst, the lines are packed with zstd' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l abort-after -d 'Give up a try after this time' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l retries -d 'Retry an abandoned request up to this many times' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l requests-per-connection -d 'Requests per connection. An idle connection with requests left is used before a new one is opened [default: 1, with --http2 and --http3 no limit]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l accept-encoding -d 'Take responses in these codings (Accept-Encoding), such as `zstd, br, gzip`. Sizes are then those of the coded bodies' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l connections -d 'HTTP/2 or HTTP/3 connections that share the streams. More are opened only when each has as many streams as the server allows [default: 6]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l source -d 'Connect from these addresses of this machine, equally or by shares (10.0.0.1=3,10.0.0.2). They share no connections' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l part -d 'Make only part K of N of the requests, or be only that part of the users. N such processes together make them all' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l tls-ca -d 'Trust servers whose certificate is signed by a certificate in this PEM file' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l in-flight-max -d 'The most requests in flight. At the limit they start late, which makes the run void (exit code 3) [default: 16000, or what `ulimit -n` allows]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l drain -d 'Time to wait for outstanding requests after the last one has started; the rest count as failed' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l open -d 'Open loop: requests start whatever the server does (always, except with --users)'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l critical-rate -d 'Measure the arrival rate above which not every request is served, that is a load of 1, for --surge or --twin. Each rate tried takes --seconds (30) [003, 4.2.3]'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l http2 -d 'Speak HTTP/2: by prior knowledge, over TLS by ALPN'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l http3 -d 'Speak HTTP/3, at the UDP port of an https target'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l tls-insecure -d 'Trust any certificate'
complete -c shortline -n "__fish_shortline_using_subcommand load" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand load" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "install" -d 'Put a qdisc with priority bands at the interface\'s root'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "remove" -d 'Remove what `install` made, and restore what was there before'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "show" -d 'Print the bands: the SO_PRIORITY of each, and the traffic through it'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l dev -d 'The interface' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l rate -d 'The uplink\'s rate, such as 100mbit; not needed if the interface itself is the bottleneck' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l bands -d 'The number of bands; the first is for control packets [default: as many as the qdisc can have]' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l kind -d 'The qdisc: prio (2 to 16 bands), htb (2 to 8, needs a rate), pfifo_fast (3) or fq (3) [default: the first of these that the kernel has]' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l replace -d 'Replace a qdisc that someone configured; `remove` restores it'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from remove" -l dev -d 'The interface' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from remove" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from show" -l dev -d 'The interface' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "install" -d 'Put a qdisc with priority bands at the interface\'s root'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove what `install` made, and restore what was there before'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print the bands: the SO_PRIORITY of each, and the traffic through it'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand lab" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l trace -d 'Trace of the requests: CSV `seconds,path,bytes`, a log in Common or Combined Log Format, or World Cup 98 records, each optionally packed with gzip; - is standard input. Unreadable lines are skipped and counted' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l workload -d 'Generated requests: w1 to w10 (Table I of paper 000), 1.4 (a constant load) or 25s@0.2,25s@1.2, on a site like the World Cup\'s or another, as in nasa:w1. Sites: world-cup, nasa, surge-001, surge-003, surge-004' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l dist -d 'Sizes in bytes on the link: exp:MEAN, bp:LOW,HIGH,ALPHA (Bounded Pareto), det:SIZE, weibull:SHAPE,MEAN, uniform:LOW,HIGH, lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA, surge-001 (paper 001, Table 1), world-cup (paper 000, 2.1), or trace:F for those of a trace; with --load, --schedule or --workload' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l load -d 'Steady load, above 0 and below 1' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l schedule -d 'Alternating load: seconds of low and of high load, then the two loads' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l seconds -d 'How long a workload or schedule lasts, in seconds [default: 100]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l jobs -d 'Jobs to count in each replication of a steady load, after the warm-up [default: 500000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l preload -d 'Jobs in the system at the start, before any arrives' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l arrivals-c2 -d 'C² (squared coefficient of variation) of the times between arrivals; 1 is Poisson' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l rate -d 'Rate of the link, such as 10mbit' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l policy -d 'Policies to compare, separated by commas: srpt (the optimum), fair, fifo, sjf, psjf, bands (or bands:CUTOFF,... or bands:N), quickfix (or quickfix:SIZE), las, fsp, boost, gittins, shares; by round trip time, with --clients: swift, fcf, srrt, stert' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l aging -d 'Serve overdue jobs first: a job is overdue X times its service time after its arrival' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l growing -d 'Raise priority with age: after X times its service time a job has the highest priority' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l servers -d 'The number of servers of that rate. A job uses at most one; fsp needs exactly one' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l dispatch -d 'Give each server a queue of its own, and choose one at a job\'s arrival: round-robin, fewest-jobs or least-work' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l guardrails -d 'Keep servers\' work of each size within G of another\'s where a server is chosen (guardrails); 1 is the tightest' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l backend-capacity -d 'Put a gate in front of servers that share: it admits this much estimated service at once (a time, auto or off). Policies fifo, sjf (with --aging), and fair for no gate' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l backend-thrash -d 'Lose the share FALL of the throughput for each job at once beyond KNEE, such as 20:0.02' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l clients -d 'Classes of clients by rate, round trip time and share, such as 56kbit/200ms*0.3,10mbit/20ms*0.7' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l users -d 'Users, all equally active, and how many clients they are if some share an address, such as 20,100/1 [default: each request is its own client]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l greedy -d 'Add a client that always waits for N responses of this size, such as 64*1KB' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l burst -d 'What a client may get in a row before it stands back (policy shares); with 0 none stands back' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l start-delay -d 'Time from an arrival until its service can begin' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l setup -d 'Work of every job in addition to its bytes' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l estimate-sigma -d 'Policies see size estimates with log-normal error: size * exp(SIGMA Z)' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l abort-after -d 'Time after which users give up and ask again' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l retries -d 'How many times a user asks again' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l quantum -d 'The length of a turn where jobs take turns (bands, quickfix)' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l seed -d 'Seed of the random numbers. A trace with whole seconds spreads the requests of a second at random with a seed, evenly without one [default: 1]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l warmup -d 'Jobs at the start that are not counted [default: a tenth of --jobs and all of --preload for a steady load, else 0]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l replications -d 'Number of runs, each with other random numbers, on all cores [default: 4 with --dist, else 1]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l confidence -d 'Confidence of the intervals' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l jobs-in-system-max -d 'The most jobs in the system at once' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l csv -d 'Write means, means by size, and the number in the system over time as CSV. With - they go to standard output and the table to standard error' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l plot -d 'Draw the results as SVG or as a page, by the file\'s ending. With - the SVG goes to standard output and the table to standard error' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l wire-segment -d 'Bytes of body in a full packet' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l wire-per-packet -d 'Bytes the link carries for each packet of a response in addition to its body' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l wire-per-request -d 'Bytes the link carries for each request in addition to its body\'s packets: handshake, acknowledgements, head' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l no-stretch -d 'Skip the starvation stretch against processor sharing, which is slow to compute'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l json -d 'Print JSON, times in seconds'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l uplink -d 'Your uplink\'s rate, such as 100mbit [default: what the busiest hour would just fill]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l processors -d 'How many statements your database works on at once: its processors [default: what the busiest hour would just keep busy]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l html -d 'Write the report as a page. With - it goes to standard output and the words to standard error' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l live -d 'Replay the busiest 60s, or so, for real, and say how far the prediction is from it: on loopback, with servers of our own, once for each of the three orders; 1s to 300s' -r
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l wire-per-request -d 'Bytes the link carries for each request beside its body\'s packets: handshake, acknowledgements, head. About 200 where connections are kept' -r
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l wire-segment -d 'Bytes of body in a full packet' -r
complete -c shortline -n "__fish_shortline_using_subcommand gain" -l json -d 'Print JSON, times in seconds'
complete -c shortline -n "__fish_shortline_using_subcommand gain" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand gain" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand model" -l dist -d 'Sizes of the jobs: exp:MEAN, bp:LOW,HIGH,ALPHA (Bounded Pareto), det:SIZE, weibull:SHAPE,MEAN, uniform:LOW,HIGH, lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA, surge-001 (paper 001, Table 1), world-cup (paper 000, 2.1); may be given more than once [default for a workload: responses like those of the World Cup 98 site]' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l load -d 'Loads, above 0 and below 1, separated by commas' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l schedule -d 'A load that alternates forever: seconds of low load, seconds of high load, and the two loads' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l workload -d 'The alternating load of paper 000, Table I: w1 to w10' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l rate -d 'Rate of the link, such as 10mbit, for a schedule or workload, whose sizes are in bytes' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l policy -d 'Policies to compare, separated by commas: srpt, psjf, sjf, las, fair, fifo; with a schedule or workload only srpt and fair' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l plot -d 'Draw slowdown by size or, for several loads, the means by load, as SVG or as a page, by the file\'s ending. With - the SVG goes to standard output and the table to standard error' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand model" -l simulate -d 'Also simulate this many jobs of each queue, and show the results beside the formula\'s' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l seed -d 'Seed of the simulation' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l tail -d 'Instead of means tell how the tails of fifo and boost fall, for light-tailed sizes: the share of jobs that take longer than t is about C e^(-g t)'
complete -c shortline -n "__fish_shortline_using_subcommand model" -l json -d 'Print JSON, times in mean service times'
complete -c shortline -n "__fish_shortline_using_subcommand model" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand model" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l listen -d 'Accept clients at this address, or at unix:/PATH (postgres, mysql); may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l reuse-port -d 'Let other processes listen on the same addresses, which say so too, for a restart without a gap [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l handover -d 'Take over addresses and clients from the gate that listens at unix:/PATH, and hand them over there to the next one: a restart without dropping a client (postgres, mysql)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l proxy-from -d 'Proxies that say who the client is, by the PROXY protocol before anything else (postgres, mysql)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l send-proxy -d 'Say to the backend who the client is, by the PROXY protocol before anything else (mysql without --pool) [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l upstream -d 'The backend\'s address, or unix:/PATH; for http also https://HOST:PORT. Several separated by commas for http, or with --pool transaction a primary and its replicas' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l monitor -d 'Ask the database as this user which statements wait for a lock, since that time is not service: postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT [default: do not ask]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l monitor-password-file -d 'The file whose first line is the monitor user\'s password' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l application-name-add-host -d 'Add the client\'s address to its application_name (postgres) [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l tls-cert -d 'Speak TLS to clients that ask for it, with this certificate chain (PEM)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l tls-key -d 'The certificate\'s key (PEM)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l tls-required -d 'Reject clients without TLS [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l upstream-tls -d 'Whether to use TLS to the backend, and how to check its certificate: follow, which uses TLS for clients that have it; disable, prefer, require, or verify-full with --upstream-ca [default: follow]' -r -f -a "follow\t'With TLS for clients that use it, if the backend has it; without TLS for the others. The certificate is not checked'
disable\t'Without TLS'
prefer\t'With TLS if the backend has it. The certificate is not checked'
require\t'Only with TLS. The certificate is not checked'
verify-full\t'Only with TLS, and with a certificate for the backend\'s name signed by one of the authorities'"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l upstream-ca -d 'The authorities that sign the backend\'s certificate (PEM), for verify-full or, with http, for an https:// upstream [default: with http those of the system]' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l policy -d 'Which waiting request goes first: sjf, the shortest estimate; gittins, the least expected work to an end by the type\'s distribution; boost, the earliest, short types as if they had come earlier; fifo, the earliest [default: sjf]' -r -f -a "fifo\t'In order of arrival'
sjf\t'Shortest estimate first'
boost\t'In order of arrival, short types as if they had come earlier'
gittins\t'The least expected work to an end first, by the type\'s distribution'"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l aging -d 'Let a shorter request pass others only if none of them then waits beyond X times its expected service time (sjf)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l oldest-share -d 'Reserve this share of the work for requests that have waited longest (sjf, gittins). With 0 the shortest always goes first, and others may starve [default: 10%]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l runaway -d 'What becomes of a request that takes more than 20 times (or as class:50) the 99th percentile of its type and 2 s: class, cancel or charge [default: it pays what it takes]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l capacity -d 'How much may run at once: a sum of estimated service times, such as 400ms, or off for no limit. With auto it is the value at which the backend does most; calibrate searches for that value once, under the current load, and prints it [default: auto]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l open-up -d 'Where a higher limit than the capacity does clearly more, raise it up to this one, such as 2s, and say so; or off [default: auto as far as it helps, a capacity that is a time never]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l trial-time -d 'The least time for which calibrate tries each capacity [default: 5s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l queue-max -d 'The most requests that may wait; one more is refused [default: 10000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l wait-max -d 'Time a request may wait before it is refused [default: 2min]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l shed -d 'Refuse a request at once if it is expected to wait longer than this [default: let it wait]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l stall-max -d 'Admit the next request if none has started or ended for this long, since those that run may depend on it; 0s for never [default: 10s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l dry-run -d 'Admit everything at once, and only count what would have waited [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l types-from -d 'What gives a type to a statement that no rule matches; the first source that has a value counts: tag, application-name, statement [default: tag,statement]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l tags-from -d 'Whose tags count, in rules and in --types-from: client networks, user:NAME, or any; for http the networks of proxies whose header counts (--tenant-by header:NAME) [default: nobody\'s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l types-max -d 'The most types; rare ones share one [default: 1000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l estimates -d 'Keep the estimates in this file across restarts' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l tenant-by -d 'Who shares the backend, where no rule says it: none, user, database, application-name, tag:KEY, or host or header:NAME for http; the least served of them goes first [default: none]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l unqueued-max -d 'The most requests that run at once of those that never wait, by a rule with wait = false [default: 16]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l admin -d 'Serve a live page, /metrics and /status at this address, or at unix:/PATH for this user and its group; never queued, keep it private' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l admin-connections-max -d 'The most open connections to the admin address [default: 64]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l admin-host -d 'Answer admin requests for this host name too, besides IP addresses and localhost; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l metrics-types-max -d 'The most types that have their own series in /metrics: those with the most work. The others share one [default: 50]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l admin-database -d 'The database name whose connections go to the gate itself, for commands such as SHOW and PAUSE. Only this machine\'s root and the gate\'s own user may use it; empty for none (postgres) [default: shortline]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l admin-uids -d 'Further users of this machine, by number, who may use the admin database' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l admin-users -d 'Users of the pool who may say everything at the admin database, from anywhere, by their password (postgres with --pool)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l stats-users -d 'Users of the pool who may only SHOW there (postgres with --pool)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l slow-wait -d 'Log each request that has waited longer than this, and send its client a notice' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l log-format -d 'The format of the log on standard error: text or json [default: text]' -r -f -a "text\t'For people'
json\t'One JSON object per line'"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool -d 'Lend clients the backend\'s connections, for a transaction or a whole session, instead of giving each its own (postgres, mysql) [default: off]' -r -f -a "off\t'Each client has a connection of its own'
session\t'For a client\'s session, from its first statement on'
transaction\t'For a transaction'"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool-size -d 'Connections to the backend at most, of all users and databases together; of several servers to each [default: 20]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool-users -d 'Who may use the pool: lines of "user" "password", as in PgBouncer\'s userlist.txt; a password may be an MD5 hash or a SCRAM secret of pg_authid, or MySQL\'s hash of mysql_native_password' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool-auth-user -d 'A user of that file that looks others up in the database (postgres)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool-auth-query -d 'What it asks, with $1 for the name; a row has the name and the secret [default: PgBouncer\'s auth_query]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool-idle-max -d 'Close a connection to the backend that nobody has used for so long [default: 10min]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pool-statements-max -d 'Prepared statements that a connection to the backend keeps [default: 200]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l watch-user -d 'The user by whom the gate asks each of several servers what it is, and how far behind (postgres, mysql)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l watch-every -d 'How often each server is asked [default: 1s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l watch-time-max -d 'Time that a server has to answer, the connection included [default: 2s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l lag-max -d 'Send nothing to a replica that is further behind [default: 10s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l primary-wait-max -d 'Time for which transactions wait while no primary is known; after that they are refused at once [default: 30s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l connections-max -d 'The most open connections of clients; one more gets an error and is closed [default: 10000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l authentication-time-max -d 'Time from accepting a connection to the end of its authentication [default: 60s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l connect-time-max -d 'Time to connect to the backend [default: 10s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l message-size-max -d 'The largest message of the protocol [default: 1GiB less 2 bytes]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l held-size-max -d 'Bytes kept for a client whose request waits; the rest stays in its socket [default: 16KiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l pipelined-max -d 'Answers a client may have outstanding before the gate stops reading from it [default: 1024]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l statements-max -d 'Prepared statements per connection whose type is remembered [default: 512]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l threads -d 'Threads that relay [default: one per two processors]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l idle-transaction-max -d 'Time a client may keep a transaction open without asking for anything; 0 for no limit [default: 0]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l drain -d 'Time that transactions under way get to finish after SIGTERM [default: 30s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l estimator -d 'How to estimate a type\'s service time from its last requests: median-of-means, which ignores outliers, or moving-average [default: median-of-means]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l estimates-fixed -d 'Use the estimates in the --estimates file unchanged: requests do not update them, and the file is not written [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -l config -d 'Read options from the table gate of this TOML file; flags override it' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -a "import" -d 'Translate a pgbouncer.ini: prints a configuration for `gate postgres --config`'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and not __fish_seen_subcommand_from import help" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and __fish_seen_subcommand_from import" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "import" -d 'Translate a pgbouncer.ini: prints a configuration for `gate postgres --config`'
complete -c shortline -n "__fish_shortline_using_subcommand gate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "serve" -d 'Serve the files below a folder'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "load" -d 'Send the requests of a trace or a generated workload to a server and report response times'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "uplink" -d 'Install, remove or show the kernel\'s priority bands on an interface'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "lab" -d 'Compare servers and policies in experiments'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "sim" -d 'Simulate what policies would do with a trace or with random arrivals'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "gain" -d 'Say what visitors would have gained, from your own access log, or a database\'s from its log'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "model" -d 'Compute what theory expects of a queue'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "gate" -d 'Run a gate in front of a database or an application, so that it does the shortest requests first'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim gain model gate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from uplink" -f -a "install" -d 'Put a qdisc with priority bands at the interface\'s root'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from uplink" -f -a "remove" -d 'Remove what `install` made, and restore what was there before'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from uplink" -f -a "show" -d 'Print the bands: the SO_PRIORITY of each, and the traffic through it'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from gate" -f -a "import" -d 'Translate a pgbouncer.ini: prints a configuration for `gate postgres --config`'
