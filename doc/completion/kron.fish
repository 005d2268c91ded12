# SPDX-License-Identifier: MIT
# fish completion for kron and the toolkit's programs, by the name that this file is installed
# under.  The words come from the programs' own tables (--help-words).

# The program, and kron's command, that the table belongs to
function __kron_table_of
    set -l words (commandline -opc)
    if string match -qr '(^|/)kron$' -- $words[1]
        string join \n -- $words[1..2]
    else
        echo $words[1]
    end
end

# The ARGUMENT that the word before the cursor wants
function __kron_wanted
    set -l table (__kron_table_of)
    set -l previous (commandline -opc)[-1]
    for line in ($table --help-words 2>/dev/null)
        set -l columns (string split \t -- $line)
        test "$columns[1]" = "$previous"; and echo $columns[2]
    end
end

function __kron_packs # beside the program, where it is built or installed
    set -l directory (path dirname (path resolve (command -v (commandline -opc)[1])))
    set -l packs $directory/{probes,../share/kron}/packs/*.probe
    path change-extension '' (path basename $packs)
end

function __kron_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l table (__kron_table_of)
    set -l command $table[2]
    set -l wanted (__kron_wanted)
    if test (count $words) = 1; and string match -qr '(^|/)kron$' -- $words[1]
        $words[1] --help-words 2>/dev/null | string replace -r '\t.*\t' \t
        printf '%s\n' --help\t'Show the commands' --version\t'Show the version'
        return
    end
    if contains -- "$command" record stat monitor; and contains -- -- $words
        set -l rest $words[(math 1 + (contains -i -- -- $words))..] $current
        complete -C (string join ' ' -- (string escape -- $rest))
        return
    end
    if string match -q '*|*' -- "$wanted" # words, and "device:PATH"
        string replace -ra '[A-Z]' '' -- $wanted | string split '|'
    else if test "$wanted" = NAME; or test "$command $words[-1]" = 'board rm'; or test "$command $words[-1]" = 'board connect'; or begin; test "$command $words[3]" = 'ctl reset'; and not string match -q -- '-*' "$current"; end
        kron board list 2>/dev/null | sed '1d;s/ .*//'
    else if contains -- $words[-1] -P --probe-file # a pack or a file
        __kron_packs
        __fish_complete_path $current
    else if test "$wanted" = DIR
        __fish_complete_directories $current
    else if string match -q -- '-*' "$current"
        $table --help-words 2>/dev/null | string replace -r '\t.*\t' \t
    else if test "$command" = board; and test (count $words) = 2
        printf '%s\n' create connect list rm
    else if test "$command" = ctl; and test (count $words) = 2
        printf '%s\n' filter on off sampling wait discard reset read write tick external probe
    else
        __fish_complete_path $current
    end
end

complete -c (string replace -r '\.fish$' '' -- (status basename)) -f -k -a '(__kron_complete)'
