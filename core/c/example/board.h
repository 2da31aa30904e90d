/* Arm's MPS2 board with a Cortex-M4 (QEMU: -M mps2-an386): start, stop, and text through semihosting. One file includes it. */
#include <stdint.h>

int main(void);

static int semihosting(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

/* SYS_WRITE to standard output, which is SYS_OPEN of ":tt" for writing. */
static void print(const char *text) {
    static const char name[] = ":tt";
    const uint32_t open[] = {(uint32_t)name, 4, sizeof name - 1};
    uint32_t length = 0;
    while (text[length]) length++;
    const uint32_t write[] = {(uint32_t)semihosting(0x01, open), (uint32_t)text, length};
    semihosting(0x05, write);
}

static void stop(int status) {
    /* ADP_Stopped_ApplicationExit is success, ADP_Stopped_InternalError is not. */
    semihosting(0x18, (const void *)(status ? 0x20024 : 0x20026));
    for (;;) {
    }
}

extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;

void reset(void);

void reset(void) {
    volatile uint32_t *cpacr = (volatile uint32_t *)0xe000ed88;
    const volatile uint32_t *from = &data_load;
    *cpacr |= 0xfu << 20; /* the floating-point unit */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    for (volatile uint32_t *to = &data_start; to < &data_end;) *to++ = *from++;
    for (volatile uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
    stop(main());
}

static void fault(void) { stop(1); }

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    &stack_top, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
};

static void print_hex(uint32_t value, int digits) {
    char text[10] = " ";
    for (int i = digits; i > 0; i--, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
    text[digits + 1] = 0;
    print(text);
}

/* The bits of numbers, after a heading. */
static inline void print_floats(const char *heading, const float *values, uint32_t count) {
    if (heading) print(heading);
    for (uint32_t i = 0; i < count; i++) {
        union {
            float value;
            uint32_t bits;
        } number = {values[i]};
        print_hex(number.bits, 8);
    }
}
