# The deepest that the stack can get below an entry point, whatever the input: from the disassembly of an ELF file that holds all it
# calls, for code of Armv7-M. A frame is what a function pushes and subtracts from `sp` (all of it, also where it pushes in two
# places of which one is taken); a way is the sum of the frames along calls.
#
#   arm-none-eabi-objdump -d FILE | awk -v address=HEX [-v show=1] -f deepest.awk
#
# Prints the bytes, with show=1 the way too; `recursive` or `indirect` where calls cannot be followed.

function hex(digits,    value, i) {
    value = 0
    for (i = 1; i <= length(digits); i++) value = value * 16 + index("0123456789abcdef", substr(digits, i, 1)) - 1
    return value
}
# How many registers a list as {r4, r5-r7, lr} names.
function registers(list,    parts, count, i, ends, total) {
    gsub(/[{} ]/, "", list)
    count = split(list, parts, ",")
    total = 0
    for (i = 1; i <= count; i++) {
        if (split(parts[i], ends, "-") == 2) {
            gsub(/[^0-9]/, "", ends[1])
            gsub(/[^0-9]/, "", ends[2])
            total += ends[2] - ends[1] + 1
        } else total++
    }
    return total
}
function list(line) { sub(/^[^{]*/, "", line); return registers(line) }
function number(line) { sub(/.*#-?/, "", line); sub(/[^0-9].*/, "", line); return line + 0 }
function target(line) { sub(/^[a-z.]+\t/, "", line); sub(/ .*/, "", line); return hex(line) }

/^[0-9a-f]+ <.*>:$/ {
    at = hex($1)
    name[at] = substr($2, 2, length($2) - 3)
    frame[at] = 0
    next
}
/^ *[0-9a-f]+:\t/ {
    line = $0
    sub(/^ *[0-9a-f]+:\t[0-9a-f ]+\t/, "", line)
    if (line ~ /^push\t/ || line ~ /^stmdb\tsp!/) frame[at] += 4 * list(line)
    else if (line ~ /^vpush\t.*d[0-9]/) frame[at] += 8 * list(line)
    else if (line ~ /^vpush\t/) frame[at] += 4 * list(line)
    else if (line ~ /^sub(\.w|w)?\tsp, (sp, )?#/) frame[at] += number(line)
    else if (line ~ /^sub.*\tsp,/) unknown[at] = 1
    else if (line ~ /^str(d|\.w)?\t.*\[sp, #-[0-9]+\]!/) frame[at] += number(line)
    else if (line ~ /^bl\t[0-9a-f]+ </) calls[at] = calls[at] " " target(line)
    else if (line ~ /^b(\.w|\.n)?\t[0-9a-f]+ </ && line !~ /\+0x[0-9a-f]+>/) tails[at] = tails[at] " " target(line)
    else if (line ~ /^blx\t/ || (line ~ /^bx\t/ && line !~ /^bx\tlr/)) unknown[at] = 1
}
function deepest(f,    all, count, i, below, most, through) {
    if (f in depth) return depth[f]
    if (busy[f]) { trouble = "recursive"; return 0 }
    if (unknown[f]) trouble = "indirect"
    busy[f] = 1
    most = 0
    through = ""
    count = split(calls[f], all, " ")
    for (i = 1; i <= count; i++) {
        below = deepest(all[i])
        if (below > most) { most = below; through = all[i] }
    }
    most += frame[f]
    # Who is jumped to at the end has the frame's place.
    count = split(tails[f], all, " ")
    for (i = 1; i <= count; i++) if (all[i] != f && (all[i] in frame)) {
        below = deepest(all[i])
        if (below > most) { most = below; through = all[i] }
    }
    busy[f] = 0
    way[f] = through
    return depth[f] = most
}
END {
    start = hex(address)
    # Thumb code has an odd address as a symbol's value.
    start -= start % 2
    if (address == "" || !(start in name)) { print "missing"; exit }
    most = deepest(start)
    print trouble == "" ? most : trouble
    if (show) for (f = start; f != ""; f = way[f]) printf "%6d %6d %s\n", frame[f], depth[f], name[f]
}
