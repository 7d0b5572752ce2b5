/* A shared object without a plug-in descriptor. */
int plugin_foreign(void);

int plugin_foreign(void)
{
    return 1;
}
