/* Declares the training step of micro.c's network that is written by hand in by_hand.c. */
#ifndef BENCH_BY_HAND_H
#define BENCH_BY_HAND_H

void by_hand_prepare(void);
void by_hand_step(void);

#endif
