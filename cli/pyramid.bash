# bash completion for pyramid(1).

_pyramid_verbs='init create write append read compute reduce handler stat ls info log diff last tag
clone resize attrs wait forget reclaim fold verify repair copy status'

_pyramid_options()
{
    local common='--json --quiet --help'
    case $1 in
    init) echo "--durability --data --lease $common" ;;
    create) echo "--shape --type --chunk --fill --codec --level --attrs" \
        "$common" ;;
    write) echo "--at --message --no-wait $common" ;;
    append) echo "--axis $common" ;;
    read) echo "--version --box --output $common" ;;
    compute) echo "--version --box --message --no-wait $common" ;;
    reduce) echo "--version --box $common" ;;
    stat) echo "--version --box --bounds $common" ;;
    ls) echo "--long $common" ;;
    info) echo "--version --each $common" ;;
    clone) echo "--version $common" ;;
    log) echo "--number --reverse --digest $common" ;;
    diff) echo "--cells $common" ;;
    last) echo "--version --box $common" ;;
    tag) echo "--delete $common" ;;
    resize) echo "--shape $common" ;;
    wait) echo "--timeout $common" ;;
    copy) echo "--versions $common" ;;
    forget) echo "--keep --older-than --tagged $common" ;;
    verify) echo "--deep --jobs $common" ;;
    repair) echo "--jobs $common" ;;
    *) echo "$common" ;;
    esac
}

# Values of the option before the cursor; fails if it is no such option.
_pyramid_value()
{
    case $1 in
    --type) echo 'i8 u8 i16 u16 i32 u32 i64 u64 f32 f64' ;;
    --codec) echo 'none lz4 zstd' ;;
    --durability) echo 'commit os' ;;
    --version) echo 'latest' "$(_pyramid_tags "$2" "$3")" ;;
    --delete | -d) _pyramid_tags "$2" "$3" ;;
    *) return 1 ;;
    esac
}

_pyramid_tags()
{
    [ -n "$1" ] && [ -n "$2" ] &&
        "${COMP_WORDS[0]}" tag "$1" "$2" 2>/dev/null |
        sed 's/^ *[0-9]*  //'
}

# Word number $1 after the verb that is neither an option nor its value.
_pyramid_word()
{
    local i n=0
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --json | --quiet | --help | --no-wait | --bounds | --long | \
            --reverse | --digest | --deep | --cells | --each | --tagged | \
            -l | -q | -h) continue ;;
        -[0-9]*) ;;
        -?*) i=$((i + 1)); continue ;;
        esac
        n=$((n + 1))
        if [ "$n" -eq "$1" ]; then
            echo "${COMP_WORDS[i]}"
            return
        fi
    done
}

_pyramid()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=${COMP_WORDS[1]} store array values IFS=$' \t\n'
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "$_pyramid_verbs --help --version" -- "$cur"))
        return
    fi
    store=$(_pyramid_word 1)
    array=$(_pyramid_word 2)
    if values=$(_pyramid_value "$prev" "$store" "$array"); then
        COMPREPLY=($(compgen -W "$values" -- "$cur"))
        return
    fi
    if [ "$verb" = handler ]; then
        case $COMP_CWORD in
        2) COMPREPLY=($(compgen -W 'add ls rm' -- "$cur")); return ;;
        5) [ "${COMP_WORDS[2]}" = add ] &&
            COMPREPLY=($(compgen -W on-write -- "$cur"))
            return ;;
        esac
        store=$(_pyramid_word 2)
        array=$(_pyramid_word 3)
    fi
    case $cur in
    -*) COMPREPLY=($(compgen -W "$(_pyramid_options "$verb")" -- "$cur"))
        return ;;
    esac
    case $prev in
    --data) COMPREPLY=($(compgen -d -- "$cur")) ;;
    -o | --output) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --shape | --chunk | --fill | --level | --attrs | --lease | --at | \
        --message | -m | --axis | --box | -n | --number | --timeout | \
        --versions | -j | --jobs | -k | --keep | --older-than) ;;
    *)  if [ -n "$store" ] && [ -z "$array" ]; then
            IFS=$'\n'
            COMPREPLY=($(compgen -W \
                "$("${COMP_WORDS[0]}" ls "$store" 2>/dev/null)" -- "$cur"))
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi ;;
    esac
}

complete -o filenames -F _pyramid pyramid
