/* Firmware that labels a sequence with a model in flash, whole and as a stream, and prints the labels' numbers through semihosting:
 * `whole NUMBER…`, `lag NUMBER…`. For Arm's MPS2 board with a Cortex-M4 (QEMU: -M mps2-an386); nothing but start, stop and print
 * knows the board. `model.h` is what `gibbsite export --to c` wrote, `items.h` what a sensor would deliver:
 *
 *   arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Os -ffreestanding -nostdlib \
 *     -I core/c -T core/c/example/firmware.ld core/c/example/firmware.c libgibbsite.a -o firmware.elf
 */
#include "gibbsite.h"
#include "items.h" /* ITEMS, PUSH, features, starts */
#include "model.h"

enum { LAG = 4 };

/* --- the board ----------------------------------------------------------------------------------------------------------- */

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

/* --- labels -------------------------------------------------------------------------------------------------------------- */

static gibbsite_model model;
static gibbsite_decoder decoder;
static uint32_t scores[MODEL_SCORES];
static uint8_t back[MODEL_BACK];

static void print_label(uint8_t label) {
    static const char digits[] = "0123456789abcdef";
    char text[] = {' ', digits[label >> 4], digits[label & 15], 0};
    print(text);
}

static int label(const char *heading, int lag) {
    static uint8_t labels[ITEMS];
    uint8_t given = 0;
    size_t known = 0, rest = 0;
    if (gibbsite_start(&decoder, &model, lag, scores, MODEL_SCORES, back, MODEL_BACK) != GIBBSITE_STATUS_OK) return 2;
    for (size_t t = 0; t < ITEMS; t++) {
        bool due = false;
        if (PUSH(&decoder, features + starts[t], starts[t + 1] - starts[t], &due, &given) != GIBBSITE_STATUS_OK) return 3;
        if (due) labels[known++] = given;
    }
    if (gibbsite_finish(&decoder, labels + known, ITEMS - known, &rest) != GIBBSITE_STATUS_OK) return 4;
    print(heading);
    for (size_t t = 0; t < known + rest; t++) print_label(labels[t]);
    print("\n");
    return known + rest == ITEMS ? 0 : 5;
}

int main(void) {
    if (gibbsite_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    int wrong = label("whole", -1);
    return wrong ? wrong : label("lag", LAG);
}
