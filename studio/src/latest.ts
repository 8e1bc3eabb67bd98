// One question at a time; of those that come meanwhile, the last. A drag asks as fast as it is
// answered, and never queues.

export class Latest {
  private running = false;
  private next: (() => Promise<void>) | null = null;

  ask(question: () => Promise<void>): void {
    if (this.running) {
      this.next = question;
      return;
    }
    this.running = true;
    void question().finally(() => {
      this.running = false;
      const next = this.next;
      this.next = null;
      if (next !== null) this.ask(next);
    });
  }
}
