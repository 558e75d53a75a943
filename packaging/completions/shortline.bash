_shortline() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="shortline"
                ;;
            shortline,gain)
                cmd="shortline__subcmd__gain"
                ;;
            shortline,gate)
                cmd="shortline__subcmd__gate"
                ;;
            shortline,help)
                cmd="shortline__subcmd__help"
                ;;
            shortline,lab)
                cmd="shortline__subcmd__lab"
                ;;
            shortline,load)
                cmd="shortline__subcmd__load"
                ;;
            shortline,model)
                cmd="shortline__subcmd__model"
                ;;
            shortline,serve)
                cmd="shortline__subcmd__serve"
                ;;
            shortline,sim)
                cmd="shortline__subcmd__sim"
                ;;
            shortline,uplink)
                cmd="shortline__subcmd__uplink"
                ;;
            shortline__subcmd__gate,help)
                cmd="shortline__subcmd__gate__subcmd__help"
                ;;
            shortline__subcmd__gate,import)
                cmd="shortline__subcmd__gate__subcmd__import"
                ;;
            shortline__subcmd__gate__subcmd__help,help)
                cmd="shortline__subcmd__gate__subcmd__help__subcmd__help"
                ;;
            shortline__subcmd__gate__subcmd__help,import)
                cmd="shortline__subcmd__gate__subcmd__help__subcmd__import"
                ;;
            shortline__subcmd__help,gain)
                cmd="shortline__subcmd__help__subcmd__gain"
                ;;
            shortline__subcmd__help,gate)
                cmd="shortline__subcmd__help__subcmd__gate"
                ;;
            shortline__subcmd__help,help)
                cmd="shortline__subcmd__help__subcmd__help"
                ;;
            shortline__subcmd__help,lab)
                cmd="shortline__subcmd__help__subcmd__lab"
                ;;
            shortline__subcmd__help,load)
                cmd="shortline__subcmd__help__subcmd__load"
                ;;
            shortline__subcmd__help,model)
                cmd="shortline__subcmd__help__subcmd__model"
                ;;
            shortline__subcmd__help,serve)
                cmd="shortline__subcmd__help__subcmd__serve"
                ;;
            shortline__subcmd__help,sim)
                cmd="shortline__subcmd__help__subcmd__sim"
                ;;
            shortline__subcmd__help,uplink)
                cmd="shortline__subcmd__help__subcmd__uplink"
                ;;
            shortline__subcmd__help__subcmd__gate,import)
                cmd="shortline__subcmd__help__subcmd__gate__subcmd__import"
                ;;
            shortline__subcmd__help__subcmd__uplink,install)
                cmd="shortline__subcmd__help__subcmd__uplink__subcmd__install"
                ;;
            shortline__subcmd__help__subcmd__uplink,remove)
                cmd="shortline__subcmd__help__subcmd__uplink__subcmd__remove"
                ;;
            shortline__subcmd__help__subcmd__uplink,show)
                cmd="shortline__subcmd__help__subcmd__uplink__subcmd__show"
                ;;
            shortline__subcmd__uplink,help)
                cmd="shortline__subcmd__uplink__subcmd__help"
                ;;
            shortline__subcmd__uplink,install)
                cmd="shortline__subcmd__uplink__subcmd__install"
                ;;
            shortline__subcmd__uplink,remove)
                cmd="shortline__subcmd__uplink__subcmd__remove"
                ;;
            shortline__subcmd__uplink,show)
                cmd="shortline__subcmd__uplink__subcmd__show"
                ;;
            shortline__subcmd__uplink__subcmd__help,help)
                cmd="shortline__subcmd__uplink__subcmd__help__subcmd__help"
                ;;
            shortline__subcmd__uplink__subcmd__help,install)
                cmd="shortline__subcmd__uplink__subcmd__help__subcmd__install"
                ;;
            shortline__subcmd__uplink__subcmd__help,remove)
                cmd="shortline__subcmd__uplink__subcmd__help__subcmd__remove"
                ;;
            shortline__subcmd__uplink__subcmd__help,show)
                cmd="shortline__subcmd__uplink__subcmd__help__subcmd__show"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        shortline)
            opts="-h -V --help --version serve load uplink lab sim gain model gate help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__gain)
            opts="-h -V --uplink --processors --html --live --json --wire-per-request --wire-segment --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --uplink)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --processors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --live)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wire-per-request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wire-segment)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__gate)
            opts="-h -V --listen --reuse-port --handover --proxy-from --send-proxy --upstream --monitor --monitor-password-file --application-name-add-host --tls-cert --tls-key --tls-required --upstream-tls --upstream-ca --policy --aging --oldest-share --runaway --capacity --open-up --trial-time --queue-max --wait-max --shed --stall-max --dry-run --types-from --tags-from --types-max --estimates --tenant-by --unqueued-max --admin --admin-connections-max --admin-host --metrics-types-max --admin-database --admin-uids --admin-users --stats-users --slow-wait --log-format --pool --pool-size --pool-users --pool-auth-user --pool-auth-query --pool-idle-max --pool-statements-max --watch-user --watch-every --watch-time-max --lag-max --primary-wait-max --connections-max --authentication-time-max --connect-time-max --message-size-max --held-size-max --pipelined-max --statements-max --threads --idle-transaction-max --drain --estimator --estimates-fixed --config --help --version http postgres mysql import help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reuse-port)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --handover)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --send-proxy)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --upstream)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --monitor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --monitor-password-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --application-name-add-host)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --tls-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-required)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --upstream-tls)
                    COMPREPLY=($(compgen -W "follow disable prefer require verify-full" -- "${cur}"))
                    return 0
                    ;;
                --upstream-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --policy)
                    COMPREPLY=($(compgen -W "fifo sjf boost gittins" -- "${cur}"))
                    return 0
                    ;;
                --aging)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --oldest-share)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runaway)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --capacity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --open-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trial-time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --queue-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stall-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dry-run)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --types-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tags-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --types-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --estimates)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tenant-by)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --unqueued-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-connections-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-types-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-database)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-uids)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stats-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow-wait)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --pool)
                    COMPREPLY=($(compgen -W "off session transaction" -- "${cur}"))
                    return 0
                    ;;
                --pool-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-auth-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-auth-query)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-idle-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pool-statements-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch-every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lag-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --primary-wait-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connections-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --authentication-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connect-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --message-size-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --held-size-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pipelined-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --statements-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-transaction-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --estimator)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --estimates-fixed)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__gate__subcmd__help)
            opts="import help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__gate__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__gate__subcmd__help__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__gate__subcmd__import)
            opts="-h -V --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help)
            opts="serve load uplink lab sim gain model gate help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__gain)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__gate)
            opts="import"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__gate__subcmd__import)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__lab)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__load)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__model)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__serve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__sim)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__uplink)
            opts="install remove show"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__uplink__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__uplink__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__help__subcmd__uplink__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__lab)
            opts="-V --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__load)
            opts="-h -V --target --trace --surge --twin --write-site --users --open --schedule --uplink --speed --seconds --seed --out --critical-rate --abort-after --retries --requests-per-connection --accept-encoding --http2 --http3 --connections --source --part --tls-ca --tls-insecure --in-flight-max --drain --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --surge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --twin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --write-site)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --schedule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --uplink)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --speed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --abort-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --requests-per-connection)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --accept-encoding)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --source)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --in-flight-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__model)
            opts="-h -V --dist --load --schedule --workload --rate --policy --tail --json --plot --simulate --seed --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --load)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --schedule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --policy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plot)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --simulate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__serve)
            opts="-h -V --listen --tls-cert --tls-key --http3 --tls-auto --config --check --handover --handover-time-max --uplink --uplink-rate-min --policy --burst --aging --jobs-max --uplink-loopback --uplink-device --uplink-packet-header --allow-system-root --index --listing --listing-entries-max --precompressed --compress --compress-file-size-max --client-ca --client-auth --client-crl --cache-file-size-max --cache-size-max --cache-files-max --cache-open-files-max --trusted-proxy --client-header --client-weight --users-per-address --user-cookie --admin --admin-connections-max --admin-host --access-log --log-format --access-log-lines-max --send-request-id --otlp --otlp-sample --connections-max --connections-per-address-max --header-size-max --header-fields-max --header-time-max --idle-time-max --stall-time-max --streams-max --disk-reads-max --compressions-max --drain --acme-directory --acme-staging --acme-contact --acme-eab-kid --acme-eab-key-file --acme-state --acme-ca --acme-key-type --acme-challenge --acme-profile --acme-revoke-replaced --acme-ask --acme-on-demand-names-max --acme-on-demand-orders-max --link-mode --growing --slots --control-band --quantum --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-cert)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-auto)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --handover)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --handover-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --uplink)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --uplink-rate-min)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --policy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --burst)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aging)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jobs-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --uplink-loopback)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --uplink-device)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --uplink-packet-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-system-root)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --index)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listing)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --listing-entries-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --precompressed)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compress-file-size-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-auth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-crl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-file-size-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-size-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-files-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache-open-files-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-proxy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-weight)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --users-per-address)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --user-cookie)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-connections-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-lines-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --send-request-id)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --otlp)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otlp-sample)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connections-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --connections-per-address-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --header-size-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --header-fields-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --header-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stall-time-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --streams-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --disk-reads-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compressions-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-staging)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --acme-contact)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-kid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-key-type)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-challenge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-profile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-revoke-replaced)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --acme-ask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-on-demand-names-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-on-demand-orders-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --link-mode)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --growing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slots)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --control-band)
                    COMPREPLY=($(compgen -W "true false" -- "${cur}"))
                    return 0
                    ;;
                --quantum)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__sim)
            opts="-h -V --trace --workload --dist --load --schedule --seconds --jobs --preload --arrivals-c2 --rate --policy --aging --growing --servers --dispatch --guardrails --backend-capacity --backend-thrash --clients --users --greedy --burst --start-delay --setup --estimate-sigma --abort-after --retries --quantum --seed --warmup --replications --confidence --no-stretch --jobs-in-system-max --json --csv --plot --wire-segment --wire-per-packet --wire-per-request --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --trace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --load)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --schedule)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jobs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arrivals-c2)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --policy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aging)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --growing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --servers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dispatch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --guardrails)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --backend-capacity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --backend-thrash)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --users)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --greedy)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --burst)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --setup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --estimate-sigma)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --abort-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --retries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --quantum)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warmup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replications)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jobs-in-system-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --csv)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --plot)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wire-segment)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wire-per-packet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wire-per-request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink)
            opts="-h -V --help --version install remove show help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__help)
            opts="install remove show help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__help__subcmd__install)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__help__subcmd__remove)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__help__subcmd__show)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__install)
            opts="-h -V --dev --rate --bands --kind --replace --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bands)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__remove)
            opts="-h -V --dev --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        shortline__subcmd__uplink__subcmd__show)
            opts="-h -V --dev --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --dev)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _shortline -o nosort -o bashdefault -o default shortline
else
    complete -F _shortline -o bashdefault -o default shortline
fi
